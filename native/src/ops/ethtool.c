/* SPDX-License-Identifier: MIT */
#include "ethtool.h"

#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A set may grow between the question for its size and the one for its names: the kernel fills what
 * it has by then. */
enum { SPARE = 4096, NAMES_MAX = 65536 };

int nb_ethtool(const char *interface, void *command)
{
	struct ifreq request = { .ifr_data = command };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), status, number;

	if (fd < 0)
		return -1;
	memcpy(request.ifr_name, interface, strnlen(interface, IFNAMSIZ - 1));
	do
		status = ioctl(fd, SIOCETHTOOL, &request);
	while (status < 0 && errno == EINTR);
	number = errno;
	close(fd);
	errno = number;
	return status < 0 ? -1 : 0;
}

static int count_names(const char *interface, uint32_t set, uint32_t *count)
{
	union {
		struct ethtool_sset_info head;
		uint32_t room[sizeof(struct ethtool_sset_info) / sizeof(uint32_t) + 1];
	} info = { .head = { .cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ULL << set } };

	if (nb_ethtool(interface, &info))
		return -1;
	*count = info.room[sizeof(info.head) / sizeof(uint32_t)];
	if (info.head.sset_mask && *count <= NAMES_MAX)
		return 0;
	errno = info.head.sset_mask ? E2BIG : EOPNOTSUPP;
	return -1;
}

struct ethtool_gstrings *nb_ethtool_names(const char *interface, uint32_t set, uint32_t *count)
{
	struct ethtool_gstrings *names;

	if (count_names(interface, set, count))
		return NULL;
	names = calloc(1, sizeof(*names) + (size_t)(*count + SPARE) * ETH_GSTRING_LEN);
	if (!names)
		return NULL;
	names->cmd = ETHTOOL_GSTRINGS;
	names->string_set = set;
	names->len = *count;
	if (*count && nb_ethtool(interface, names)) {
		int number = errno;

		free(names);
		errno = number;
		return NULL;
	}
	if (names->len < *count)
		*count = names->len;
	return names;
}

const char *nb_ethtool_name(const struct ethtool_gstrings *names, uint32_t index)
{
	return (const char *)names->data + (size_t)index * ETH_GSTRING_LEN;
}

int nb_ethtool_name_length(const struct ethtool_gstrings *names, uint32_t index)
{
	return (int)strnlen(nb_ethtool_name(names, index), ETH_GSTRING_LEN);
}
