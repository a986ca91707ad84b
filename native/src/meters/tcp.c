/* SPDX-License-Identifier: MIT */
/* TCP_INFO of each stream (tcp(7), include/uapi/linux/tcp.h), and where its packets come in
 * (socket(7)). */
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
	{ "incoming_cpu", "CPU that last took in a packet of it (SO_INCOMING_CPU)",
	  .per = NB_PER_STREAM, .flags = NB_GAUGE },
	{ "napi_id", "queue that last brought one (SO_INCOMING_NAPI_ID); 0: none, as over lo",
	  .per = NB_PER_STREAM, .flags = NB_GAUGE },
};

static const size_t places[] = {
	offsetof(struct tcp_info, tcpi_total_retrans), offsetof(struct tcp_info, tcpi_segs_out),
	offsetof(struct tcp_info, tcpi_segs_in),       offsetof(struct tcp_info, tcpi_rtt),
	offsetof(struct tcp_info, tcpi_snd_cwnd),
};
static const int options[] = { SO_INCOMING_CPU, SO_INCOMING_NAPI_ID };

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

		for (size_t c = 0; c < NB_LENGTH(places); c++) {
			uint32_t number;

			memcpy(&number, (char *)&info + places[c], sizeof(number));
			numbers[c * reading->streams + i] = failed ? NB_MISSING : number;
		}
		for (size_t o = 0; o < NB_LENGTH(options); o++) {
			int number = -1; /* also: no packet yet */

			length = sizeof(number);
			if (!idle)
				getsockopt(flow->socket, SOL_SOCKET, options[o], &number, &length);
			numbers[(NB_LENGTH(places) + o) * reading->streams + i] =
				number < 0 ? NB_MISSING : (uint64_t)number;
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
