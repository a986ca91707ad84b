/* SPDX-License-Identifier: MIT */
/*
 * Operations on interfaces, on real ones of a network namespace of this test's own; and what they
 * make of answers that no kernel gives. Whether they say the same as other tools is
 * tests/engine/test_operations.py's to find out.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guard.h"
#include "op_helper.h"
#include "ops/client.h"
#include "ops/netlink.h"

extern const struct nb_op nb_op_neighbours, nb_op_link;

/* Datagrams that recv(2) returns one after the other; an empty one is an interrupted call. */
static struct {
	unsigned char data[256];
	size_t length;
} script[64];
static size_t delivered, scripted;

ssize_t recv(int fd, void *data, size_t length, int flags)
{
	if (delivered == scripted)
		return syscall(SYS_recvfrom, fd, data, length, flags, NULL, NULL);
	memcpy(data, script[delivered].data, script[delivered].length);
	if (script[delivered++].length)
		return (ssize_t)script[delivered - 1].length;
	errno = EINTR;
	return -1;
}

static int alone; /* in a namespace of its own, with the interfaces va and vb of one veth */

static void command(const char *line)
{
	char argv[256], output[1024];
	size_t length = strlen(line);

	for (size_t i = 0; i <= length; i++)
		argv[i] = line[i] == ' ' ? 0 : line[i];
	if (nb_exec(argv, length, 5000000000ULL, output, sizeof(output), &op_error))
		fail_msg("%s: %s", line, output);
}

static int enter(void **state)
{
	char output[256];

	(void)state;
	alone = !nb_exec("ip\0link", 7, 5000000000ULL, output, sizeof(output), &op_error) &&
		!unshare(CLONE_NEWNET);
	if (alone)
		command("ip link add dev va numtxqueues 2 numrxqueues 2 type veth peer name vb");
	return 0;
}

static void need_namespace(void)
{
	if (!alone) {
		print_message("not run: it needs root, and ip(8)\n");
		skip();
	}
}

static void what_is_set_comes_back(void **state)
{
	static const struct {
		const char *before, *words, *value;
	} cases[] = {
		{ NULL, "link va mtu", "9000" },
		{ NULL, "link va gro_ipv4_max_size", "20000\n" },
		{ NULL, "features va", "tx-scatter-gather off\nloopback on" },
		{ "ip link set va up", "qdisc va", "pfifo" },
	};
	char *was;

	(void)state;
	need_namespace();
	for (size_t i = 0; i < NB_LENGTH(cases); i++) {
		if (cases[i].before)
			command(cases[i].before);
		was = strdup(op_get(cases[i].words));
		op_set(cases[i].words, cases[i].value);
		assert_string_not_equal(was, op_get(cases[i].words));
		op_restore(cases[i].words, was);
		free(was);
	}
	was = strdup(op_get("neighbours link va"));
	op_set("link va mtu", "1300");
	op_restore("neighbours link va", was);
	free(was);
}

static int forbids_vm(const struct nb_client *client, const struct nb_op_request *request,
		      struct nb_error *error)
{
	(void)client;
	return strstr(request->value, "vm") ? nb_fail(error, NB_ERR_UNSUPPORTED, "", "", "vm") : 0;
}

static void what_may_not_be_written_any_more_is_no_undo(void **state)
{
	static const char only[] = "only\0link:0 vm\n mtu\n", mtu[] = "va\0mtu";
	struct nb_target beside = { only, sizeof(only) - 1 }, of = { mtu, sizeof(mtu) - 1 },
			 no = { 0 };
	struct nb_client client = { .permit = forbids_vm };
	struct nb_undo_entry *held = NULL;
	struct nb_error error;

	(void)state;
	need_namespace();
	command("ip link set va mtu 1500");
	command("ip link add vm link va type macvlan");
	assert_int_equal(0, nb_undo_push(&held, 1, &nb_op_neighbours, &beside, &no, "", &error));
	assert_int_equal(0, nb_undo_push(&held, 2, &nb_op_link, &of, &no, "1500\n", &error));
	nb_undo_note(held, 0);
	op_set("link va mtu", "1300");
	nb_undo_note(held, 1);
	assert_int_equal(-NB_ERR_UNSUPPORTED, nb_undo(&held, 1, &client, &error));
	assert_string_equal("1500\n", op_get("link va mtu"));
	command("ip link delete vm");
}

static void what_is_no_link_is_refused(void **state)
{
	(void)state;
	op_must_fail("link a-name-that-is-too-long mtu", NULL, NB_ERR_REQUEST,
		     "not the name of an interface");
	op_must_fail("link ../a mtu", NULL, NB_ERR_REQUEST, "not the name of an interface");
	op_must_fail("link lo colour", NULL, NB_ERR_REQUEST, "a link has no 'colour'");
	op_must_fail("link lo state", "up", NB_ERR_REQUEST, "cannot be set");
	op_must_fail("link lo mtu", "-1", NB_ERR_REQUEST, "'-1' for mtu");
	op_must_fail("link lo mtu", "1500 bytes", NB_ERR_REQUEST, "'1500 bytes' for mtu");
	op_must_fail("link lo mtu", "99999999999999999999", NB_ERR_REQUEST, "for mtu");
	need_namespace();
	op_must_fail("link va mtu", "70000", NB_ERR_SYSTEM, "mtu of va");
}

static void attributes_end_where_their_message_ends(void **state)
{
	struct {
		struct rtattr head;
		uint32_t number;
		struct rtattr tail;
	} one = { { 8, 3 }, 77, { 4, 5 } };
	size_t size;
	uint32_t number = 0;

	(void)state;
	for (size_t length = 0; length <= sizeof(one); length++) {
		unsigned char *exact =
			malloc(length ? length : 1); /* the sanitizer sees what reads past it */

		assert_non_null(exact);
		memcpy(exact, &one, length);
		assert_int_equal(length >= 8,
				 nb_attribute_copy(exact, length, 3, &number, sizeof(number)));
		assert_int_equal(length >= 12, nb_attribute(exact, length, 5, &size) != NULL);
		assert_null(nb_attribute(exact, length, 4, &size));
		free(exact);
	}
	assert_int_equal(77, number);
	assert_false(nb_attribute_copy(&one, sizeof(one), 5, &number,
				       sizeof(number))); /* too short a one */
	one.head.rta_len = 3;
	assert_null(nb_attribute(&one, sizeof(one), 5, &size));
	one.head.rta_len = 13;
	assert_null(nb_attribute(&one, sizeof(one), 3, &size));
	one.head = (struct rtattr){ 8, 3 | NLA_F_NESTED };
	assert_non_null(nb_attribute(&one, sizeof(one), 3, &size));
}

static void say(void)
{
	script[scripted++].length = 0;
}

/* Another message in the last datagram. */
static void add(uint16_t type, uint16_t flags, uint32_t sequence, const void *body, size_t length)
{
	struct nlmsghdr head = { (uint32_t)(sizeof(head) + length), type, flags, sequence, 0 };
	size_t *used = &script[scripted - 1].length;

	assert_true(*used + sizeof(head) + length <= sizeof(script[0].data));
	memcpy(script[scripted - 1].data + *used, &head, sizeof(head));
	memcpy(script[scripted - 1].data + *used + sizeof(head), body, length);
	*used += NLMSG_ALIGN(sizeof(head) + length);
}

/* Ask for qdiscs, of which the script says something. Returns the errno, or 0. */
static int ask(struct nb_netlink *netlink)
{
	struct tcmsg head = { 0 };
	int number;

	nb_netlink_begin(netlink, RTM_GETQDISC, NLM_F_DUMP, &head, sizeof(head));
	number = nb_netlink_ask(netlink) ? errno : 0;
	assert_int_equal(scripted, delivered);
	delivered = scripted = 0;
	return number;
}

static void say_one(uint16_t flags, int index)
{
	struct tcmsg head = { .tcm_ifindex = index };

	say();
	add(RTM_NEWQDISC, flags, 1, &head, sizeof(head));
}

static void say_done(void)
{
	int number = 0;

	say();
	add(NLMSG_DONE, 0, 1, &number, sizeof(number));
}

static void an_interrupted_dump_is_asked_for_again(void **state)
{
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;

	(void)state;
	say_one(0, 1);
	say_one(NLM_F_DUMP_INTR, 2);
	say_done();
	say(); /* a signal */
	say_one(0, 3);
	add(RTM_NEWQDISC, 0, 77, &head, sizeof(head)); /* the answer to another request */
	say_done();
	assert_int_equal(0, ask(&netlink));
	assert_int_equal(1, nb_netlink_next(&netlink, &at, RTM_NEWQDISC, &head, sizeof(head),
					    &attributes, &length));
	assert_int_equal(3, head.tcm_ifindex);
	assert_int_equal(0, length);
	assert_int_equal(0, nb_netlink_next(&netlink, &at, RTM_NEWQDISC, &head, sizeof(head),
					    &attributes, &length));
	nb_netlink_free(&netlink);
	for (int i = 0; i < 20; i++) {
		say_one(NLM_F_DUMP_INTR, 1);
		say_done();
	}
	assert_int_equal(EBUSY, ask(&netlink));
	nb_netlink_free(&netlink);
}

static void answers_that_lie_about_their_length_are_refused(void **state)
{
	static const uint32_t lengths[] = { 0, 15, 1000, UINT32_MAX };
	struct nb_netlink netlink;
	struct tcmsg head;
	const void *attributes;
	size_t at = 0, length;

	(void)state;
	for (size_t i = 0; i < NB_LENGTH(lengths); i++) {
		say_one(0, 1);
		memcpy(script[0].data, &lengths[i], sizeof(lengths[i]));
		assert_int_equal(EBADMSG, ask(&netlink));
		nb_netlink_free(&netlink);
	}
	say();
	script[0].length = 7;
	assert_int_equal(EBADMSG, ask(&netlink));
	nb_netlink_free(&netlink);
	say();
	add(NLMSG_DONE, 0, 1, "", 0);
	assert_int_equal(EBADMSG, ask(&netlink));
	nb_netlink_free(&netlink);
	say();
	add(RTM_NEWQDISC, 0, 1, "short", 5); /* no struct tcmsg: passed over */
	say_done();
	assert_int_equal(0, ask(&netlink));
	assert_int_equal(0, nb_netlink_next(&netlink, &at, RTM_NEWQDISC, &head, sizeof(head),
					    &attributes, &length));
	nb_netlink_free(&netlink);
}

static void the_kernels_words_are_heard(void **state)
{
	struct {
		struct nlmsgerr end;
		struct rtattr head;
		char words[16];
	} failed = { { -EINVAL, { .nlmsg_len = 16 } }, { 20, NLMSGERR_ATTR_MSG }, "no such thing" };
	struct nb_netlink netlink;

	(void)state;
	for (size_t length = sizeof(failed.end); length <= sizeof(failed); length += 4) {
		say();
		add(NLMSG_ERROR, NLM_F_ACK_TLVS, 1, &failed, length);
		assert_int_equal(EINVAL, ask(&netlink));
		assert_string_equal(length == sizeof(failed) ? "no such thing" : "", netlink.why);
		nb_netlink_free(&netlink);
	}
	failed.end.msg.nlmsg_len = UINT32_MAX; /* the words would be past the end */
	say();
	add(NLMSG_ERROR, NLM_F_ACK_TLVS, 1, &failed, sizeof(failed));
	assert_int_equal(EINVAL, ask(&netlink));
	assert_string_equal("", netlink.why);
	nb_netlink_free(&netlink);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_set_comes_back),
		cmocka_unit_test(what_may_not_be_written_any_more_is_no_undo),
		cmocka_unit_test(what_is_no_link_is_refused),
		cmocka_unit_test(attributes_end_where_their_message_ends),
		cmocka_unit_test(an_interrupted_dump_is_asked_for_again),
		cmocka_unit_test(answers_that_lie_about_their_length_are_refused),
		cmocka_unit_test(the_kernels_words_are_heard),
	};

	return cmocka_run_group_tests_name("devices", tests, enter, NULL);
}
