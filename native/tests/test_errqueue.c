/* SPDX-License-Identifier: MIT */
/* What the kernel writes into an error queue about zero-copy sends, and what could be there beside
 * it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "methods/errqueue.h"

/* Messages that are put together here, as recvmsg(2) leaves them. */
struct letter {
	struct msghdr message;
	union {
		struct cmsghdr first;
		char room[256];
	} control;
};

static void begin(struct letter *letter)
{
	memset(letter, 0, sizeof(*letter));
	letter->message.msg_control = &letter->control;
}

static void add(struct letter *letter, int level, int type, const void *data, size_t length)
{
	struct cmsghdr *at =
		(struct cmsghdr *)(void *)(letter->control.room + letter->message.msg_controllen);

	at->cmsg_level = level;
	at->cmsg_type = type;
	at->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(at), data, length);
	letter->message.msg_controllen += CMSG_SPACE(length);
}

static struct sock_extended_err range(uint32_t first, uint32_t last, uint8_t code)
{
	return (struct sock_extended_err){ .ee_origin = SO_EE_ORIGIN_ZEROCOPY,
					   .ee_code = code,
					   .ee_info = first,
					   .ee_data = last };
}

/* How many sends one notice completes, by either family. */
static uint64_t completed(const struct sock_extended_err *notice, int *copied)
{
	struct letter v4, v6;
	uint64_t count;
	int again;

	begin(&v4);
	add(&v4, IPPROTO_IP, IP_RECVERR, notice, sizeof(*notice));
	begin(&v6);
	add(&v6, IPPROTO_IPV6, IPV6_RECVERR, notice, sizeof(*notice));
	count = nb_completed(&v4.message, copied);
	assert_true(count == nb_completed(&v6.message, &again));
	assert_int_equal(*copied, again);
	return count;
}

static void ranges_are_inclusive_and_wrap(void **state)
{
	static const struct {
		uint32_t first, last;
		uint64_t count;
	} cases[] = {
		{ 0, 0, 1 },
		{ 7, 7, 1 },
		{ 3, 17, 15 },
		{ UINT32_MAX, UINT32_MAX, 1 },
		{ UINT32_MAX - 1, 1, 4 },
		{ 0, UINT32_MAX, 1ULL << 32 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (uint8_t code = 0; code <= SO_EE_CODE_ZEROCOPY_COPIED; code++) {
			struct sock_extended_err notice =
				range(cases[i].first, cases[i].last, code);
			int copied = -1;

			assert_true(cases[i].count == completed(&notice, &copied));
			assert_int_equal(code, copied);
		}
}

static void other_news_completes_nothing(void **state)
{
	struct sock_extended_err stamp = range(1, 9, 1), failed = range(1, 9, 1),
				 notice = range(10, 12, 0);
	struct letter letter;
	int copied = -1;

	(void)state;
	stamp.ee_origin = SO_EE_ORIGIN_TIMESTAMPING;
	failed.ee_errno = ECONNREFUSED;
	assert_true(!completed(&stamp, &copied) && !copied && !completed(&failed, &copied));
	/* Another level, the family's own but another type, and one that was cut short. */
	begin(&letter);
	assert_true(0 == nb_completed(&letter.message, &copied));
	add(&letter, SOL_SOCKET, IP_RECVERR, &notice, sizeof(notice));
	add(&letter, IPPROTO_IP, IP_TTL, &notice, sizeof(notice));
	add(&letter, IPPROTO_IPV6, IP_RECVERR, &notice, sizeof(notice));
	add(&letter, IPPROTO_IP, IP_RECVERR, &notice, sizeof(notice) - 1);
	add(&letter, IPPROTO_IP, IP_RECVERR, &stamp, sizeof(stamp));
	assert_true(0 == nb_completed(&letter.message, &copied));
	/* One is found behind all of these. */
	add(&letter, IPPROTO_IP, IP_RECVERR, &notice, sizeof(notice));
	assert_true(3 == nb_completed(&letter.message, &copied) && !copied);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_inclusive_and_wrap),
		cmocka_unit_test(other_news_completes_nothing),
	};

	return cmocka_run_group_tests_name("errqueue", tests, NULL, NULL);
}
