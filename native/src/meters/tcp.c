/* SPDX-License-Identifier: MIT */
/* TCP_INFO of each stream (tcp(7), include/uapi/linux/tcp.h). */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "../meter.h"
#include "../method.h"

static const struct nb_field counters[] = {
	{ "retransmits", "segments sent again (tcpi_total_retrans)", .unit = NB_UNIT_PACKETS,
	  .per = NB_PER_STREAM },
	{ "segments_out", "segments sent (tcpi_segs_out)", .unit = NB_UNIT_PACKETS,
	  .per = NB_PER_STREAM },
	{ "segments_in", "segments received (tcpi_segs_in)", .unit = NB_UNIT_PACKETS,
	  .per = NB_PER_STREAM },
	{ "rtt_us", "smoothed round trip (tcpi_rtt)", .unit = NB_UNIT_US, .per = NB_PER_STREAM,
	  .flags = NB_GAUGE },
	{ "cwnd", "congestion window (tcpi_snd_cwnd)", .unit = NB_UNIT_PACKETS,
	  .per = NB_PER_STREAM, .flags = NB_GAUGE },
};

static const size_t places[] = {
	offsetof(struct tcp_info, tcpi_total_retrans), offsetof(struct tcp_info, tcpi_segs_out),
	offsetof(struct tcp_info, tcpi_segs_in),       offsetof(struct tcp_info, tcpi_rtt),
	offsetof(struct tcp_info, tcpi_snd_cwnd),
};

static void read_info(struct nb_reading *reading, uint64_t *numbers)
{
	for (size_t i = 0; i < reading->streams; i++) {
		struct tcp_info info;
		socklen_t length = sizeof(info);
		const struct nb_flow *flow = &reading->flows[i];
		/* Requests over a connection each leave the one that stays idle. */
		int idle = (flow->method->flags & (NB_REQUESTS | NB_ALONE)) ==
			   (NB_REQUESTS | NB_ALONE);
		int failed =
			idle || getsockopt(flow->socket, IPPROTO_TCP, TCP_INFO, &info, &length);

		for (size_t c = 0; c < NB_LENGTH(counters); c++) {
			uint32_t number;

			memcpy(&number, (char *)&info + places[c], sizeof(number));
			numbers[c * reading->streams + i] = failed ? NB_MISSING : number;
		}
	}
}

const struct nb_meter nb_meter_tcp = {
	.name = "tcp",
	.about = "TCP_INFO of each stream",
	.flags = NB_ALWAYS | NB_SAMPLED,
	NB_TABLE(counters),
	.read = read_info,
};
