/* SPDX-License-Identifier: MIT */
/* TCP_INFO of each stream (tcp(7), include/uapi/linux/tcp.h). */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "../flow.h"
#include "../meter.h"

#define FIELD(member) offsetof(struct tcp_info, member), sizeof(((struct tcp_info *)NULL)->member)

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

static const struct {
	size_t offset;
	size_t size;
} places[] = {
	{ FIELD(tcpi_total_retrans) }, { FIELD(tcpi_segs_out) }, { FIELD(tcpi_segs_in) },
	{ FIELD(tcpi_rtt) },	       { FIELD(tcpi_snd_cwnd) },
};

static void read_info(struct nb_reading *reading, uint64_t *numbers)
{
	for (size_t i = 0; i < reading->streams; i++) {
		struct tcp_info info;
		socklen_t length = sizeof(info);

		if (getsockopt(reading->flows[i].socket, IPPROTO_TCP, TCP_INFO, &info, &length))
			length = 0;
		for (size_t c = 0; c < NB_LENGTH(counters); c++) {
			uint32_t number;

			memcpy(&number, (char *)&info + places[c].offset, sizeof(number));
			/* An older kernel gives a shorter structure. */
			numbers[c * reading->streams + i] =
				places[c].offset + places[c].size <= length ? number : NB_MISSING;
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
