/* SPDX-License-Identifier: MIT */
/*
 * A sender of power.py that is slower by what it is told: it waits, busily, before each write(2).
 *
 *	paced send ADDRESS PORT SECONDS CHUNK WAIT_NS
 *	paced receive PORT
 *
 * The sender prints what it sent and how long that took. The receiver says when it listens, and
 * reads until the connection ends. Both ask for small socket buffers: what lies in them at the end
 * was written, but its reading was not paid for.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	MOST = 1024 * 1024,
	QUEUE = 256 * 1024, /* bytes asked for each side: what is queued is not yet moved */
};

#define CONGESTION "cubic" /* bbr paces by its own estimates */

static char buffer[MOST];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static void prepare(int socket, int which)
{
	int queue = QUEUE;

	if (setsockopt(socket, SOL_SOCKET, which, &queue, sizeof(queue)) ||
	    setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, CONGESTION, sizeof(CONGESTION)))
		fail("setsockopt");
}

static void send_for(int socket, int64_t seconds_ns, size_t chunk, int64_t wait_ns)
{
	int64_t begun = now_ns(), now = begun;
	long long total = 0;

	while (now < begun + seconds_ns) {
		while (now_ns() < now + wait_ns)
			;
		ssize_t sent = write(socket, buffer, chunk);

		if (sent < 0)
			fail("write");
		total += sent;
		now = now_ns();
	}
	printf("%lld bytes in %.9f s\n", total, (double)(now - begun) / 1e9);
}

static void receive(int port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
	};
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	prepare(listener, SO_RCVBUF);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1))
		fail("listen");
	puts("listening");
	fflush(stdout);
	peer = accept(listener, NULL, NULL);
	if (peer < 0)
		fail("accept");
	while (read(peer, buffer, sizeof(buffer)) > 0)
		;
}

int main(int count, char **words)
{
	if (count == 3 && !strcmp(words[1], "receive")) {
		receive(atoi(words[2]));
		return 0;
	}
	if (count != 7 || strcmp(words[1], "send") || strtoul(words[5], NULL, 10) > MOST) {
		fputs("paced send ADDRESS PORT SECONDS CHUNK WAIT_NS | paced receive PORT\n",
		      stderr);
		return 2;
	}

	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)atoi(words[3])),
	};
	int socket_ = socket(AF_INET, SOCK_STREAM, 0);

	prepare(socket_, SO_SNDBUF);
	inet_pton(AF_INET, words[2], &address.sin_addr);
	if (connect(socket_, (struct sockaddr *)&address, sizeof(address)))
		fail("connect");
	send_for(socket_, (int64_t)(atof(words[4]) * 1e9), strtoul(words[5], NULL, 10),
		 atoll(words[6]));
	return 0;
}
