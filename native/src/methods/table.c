/* SPDX-License-Identifier: MIT */
/* One row a method. */
#include "../method.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
#define SEND_METHODS(row) \
	row(null) \
	row(write) \
	row(readwrite) \
	row(sendfile) \
	row(splice) \
	row(mmap) \
	row(vmsplice) \
	row(zerocopy) \
	row(uring) \
	row(uring_zc) \
	row(nfs) \
	row(request) \
	row(connect)

#define RECEIVE_METHODS(row) \
	row(null) \
	row(read) \
	row(trunc) \
	row(splice) \
	row(mmap) \
	row(vmsplice) \
	row(zerocopy) \
	row(uring) \
	row(nfs) \
	row(request) \
	row(connect)
/* clang-format on */

#define DECLARE_SEND(name) extern const struct nb_method nb_send_##name;
#define DECLARE_RECEIVE(name) extern const struct nb_method nb_receive_##name;
#define SEND(name) &nb_send_##name,
#define RECEIVE(name) &nb_receive_##name,

SEND_METHODS(DECLARE_SEND)
RECEIVE_METHODS(DECLARE_RECEIVE)

const struct nb_method *const nb_send_methods[] = { SEND_METHODS(SEND) NULL };
const struct nb_method *const nb_receive_methods[] = { RECEIVE_METHODS(RECEIVE) NULL };

const struct nb_method *nb_method_named(enum nb_row_kind kind, const char *name)
{
	const struct nb_method *const *methods =
		kind == NB_ROW_SEND ? nb_send_methods : nb_receive_methods;

	for (; *methods; methods++)
		if (!strcmp((*methods)->name, name))
			return *methods;
	return NULL;
}
