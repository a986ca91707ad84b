/* SPDX-License-Identifier: MIT */
/*
 * The meter `perf` beside a simulated PMU: few machines that run these tests have one. What is
 * simulated is the system call alone: syscall(2) here answers perf_event_open(2), and what read(2)
 * gives of a group comes through a pipe, laid out as perf_event_open(2) says.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "meter.h"
#include "test_controller.h"

enum { CPUS = 3, EVENTS = 13, GROUPS = 3, FDS = 4096 };

extern const struct nb_meter nb_meter_perf;

static struct {
	struct perf_event_attr attr[CPUS][EVENTS];
	size_t opened[CPUS]; /* events by now */
	int leader[CPUS][GROUPS];
	int pipe_of[FDS]; /* by a leader's descriptor, where its group is written */
	int fault[CPUS];  /* errno of hardware events there; 0: they open */
	int enabled;
} pmu;

static size_t group_of(size_t event)
{
	return event / 4 < GROUPS ? event / 4 : GROUPS - 1;
}

static int simulate_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group,
			 unsigned long flags)
{
	size_t event = pmu.opened[cpu];
	int ends[2];

	assert_int_equal(-1, pid);
	assert_int_equal(PERF_FLAG_FD_CLOEXEC, flags);
	assert_int_equal(sizeof(*attr), attr->size);
	if (attr->type == PERF_TYPE_HARDWARE && pmu.fault[cpu]) {
		errno = pmu.fault[cpu];
		return -1;
	}
	assert_int_equal(0, pipe(ends));
	assert_true(ends[0] < FDS);
	assert_true(event < EVENTS);
	pmu.attr[cpu][event] = *attr;
	pmu.opened[cpu]++;
	if (group < 0) {
		assert_true(attr->disabled);
		pmu.leader[cpu][attr->type == PERF_TYPE_SOFTWARE ? GROUPS - 1 : group_of(event)] =
			ends[0];
	} else {
		assert_false(attr->disabled);
	}
	pmu.pipe_of[ends[0]] = ends[1];
	return ends[0];
}

long syscall(long number, ...)
{
	const struct perf_event_attr *attr;
	va_list rest;
	pid_t pid;
	int cpu, group;

	if (number != SYS_perf_event_open) {
		errno = ENOSYS;
		return -1;
	}
	va_start(rest, number);
	attr = va_arg(rest, const struct perf_event_attr *);
	pid = va_arg(rest, pid_t);
	cpu = va_arg(rest, int);
	group = va_arg(rest, int);
	number = simulate_open(attr, pid, cpu, group, va_arg(rest, unsigned long));
	va_end(rest);
	return number;
}

int ioctl(int fd, unsigned long request, ...)
{
	(void)fd;
	assert_int_equal(PERF_EVENT_IOC_ENABLE, request);
	pmu.enabled++;
	return 0;
}

/* What the kernel would give of a group: values 1000 * group + 100 * cpu + place. */
static void write_group(size_t cpu, size_t group, uint64_t enabled, uint64_t running)
{
	size_t count = group == GROUPS - 1 ? 5 : 4;
	uint64_t words[3 + 5] = { count, enabled, running };
	ssize_t length = (ssize_t)((3 + count) * sizeof(*words));

	for (size_t i = 0; i < count; i++)
		words[3 + i] = 1000 * (group + 1) + 100 * cpu + i;
	assert_int_equal(length, write(pmu.pipe_of[pmu.leader[cpu][group]], words, (size_t)length));
}

static struct nb_reading reading;
static uint64_t numbers[17];

static void open_perf(void)
{
	struct nb_error error;

	reading = (struct nb_reading){ .meter = &nb_meter_perf, .cpus = CPUS };
	if (nb_meter_files_open(&reading, &error))
		fail_msg("%s", error.message);
}

static void read_perf(void)
{
	nb_meter_perf.read(&reading, numbers);
}

static int clean(void **state)
{
	(void)state;
	nb_meter_files_close(&reading);
	for (int fd = 0; fd < FDS; fd++)
		if (pmu.pipe_of[fd])
			close(pmu.pipe_of[fd]);
	memset(&pmu, 0, sizeof(pmu));
	return 0;
}

static uint64_t number_of(const char *name)
{
	for (size_t i = 0; i < 17; i++)
		if (!strcmp(nb_meter_perf.counters[i].name, name))
			return numbers[i];
	fail_msg("no counter %s", name);
	return 0;
}

static void kernel_and_user_are_counted_apart_in_groups(void **state)
{
	static const uint64_t format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;

	(void)state;
	open_perf();
	assert_int_equal(CPUS * GROUPS, pmu.enabled);
	for (size_t cpu = 0; cpu < CPUS; cpu++) {
		assert_int_equal(EVENTS, pmu.opened[cpu]);
		for (size_t e = 0; e < EVENTS; e++) {
			const struct perf_event_attr *attr = &pmu.attr[cpu][e];

			assert_int_equal(format, attr->read_format);
			assert_int_equal(0, attr->sample_period);
			if (attr->type == PERF_TYPE_HARDWARE)
				assert_int_equal(1, attr->exclude_kernel + attr->exclude_user);
			else
				assert_int_equal(0, attr->exclude_kernel + attr->exclude_user);
		}
	}
}

static void a_group_is_one_read_and_its_times_are_kept(void **state)
{
	(void)state;
	open_perf();
	for (size_t cpu = 0; cpu < CPUS; cpu++) {
		write_group(cpu, 0, 10, 7);
		write_group(cpu, 1, 10, 3);
		write_group(cpu, 2, 10, 10);
	}
	read_perf();
	assert_int_equal(1000 + 1100 + 1200, number_of("kernel_cycles"));
	assert_int_equal(3004 + 3104 + 3204, number_of("page_faults"));
	assert_int_equal(30, number_of("cycles_enabled_ns"));
	assert_int_equal(21, number_of("cycles_running_ns"));
}

static void a_cpu_that_is_offline_is_left_out(void **state)
{
	(void)state;
	pmu.fault[1] = ENODEV;
	open_perf();
	write_group(0, 0, 1, 1);
	write_group(2, 0, 1, 1);
	write_group(0, 1, 1, 1);
	write_group(2, 1, 1, 1);
	for (size_t cpu = 0; cpu < CPUS; cpu++)
		write_group(cpu, 2, 1, 1);
	read_perf();
	assert_int_equal(1000 + 1200, number_of("kernel_cycles"));
}

/* On a CPU with two kinds of cores a sum over one of them would be no sum. */
static void what_one_cpu_cannot_count_is_counted_nowhere(void **state)
{
	(void)state;
	pmu.fault[2] = ENOENT;
	open_perf();
	for (size_t cpu = 0; cpu < CPUS; cpu++)
		write_group(cpu, 2, 1, 1);
	read_perf();
	assert_true(number_of("kernel_cycles") == NB_MISSING);
	assert_true(number_of("cycles_enabled_ns") == NB_MISSING);
	assert_true(number_of("user_cache_misses") == NB_MISSING);
	assert_int_equal(3002 + 3102 + 3202, number_of("context_switches"));
}

static void a_cpu_that_goes_takes_the_sum_with_it(void **state)
{
	(void)state;
	open_perf();
	for (size_t cpu = 0; cpu < CPUS; cpu++)
		for (size_t group = 0; group < GROUPS; group++)
			if (cpu != 1 || group != 0)
				write_group(cpu, group, 1, 1);
	close(pmu.pipe_of[pmu.leader[1][0]]); /* its read ends at once */
	pmu.pipe_of[pmu.leader[1][0]] = 0;
	read_perf();
	assert_true(number_of("kernel_cycles") == NB_MISSING);
	assert_true(number_of("cycles_running_ns") == NB_MISSING);
	assert_int_equal(2000 + 2100 + 2200, number_of("kernel_cache_misses"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(kernel_and_user_are_counted_apart_in_groups, clean),
		cmocka_unit_test_teardown(a_group_is_one_read_and_its_times_are_kept, clean),
		cmocka_unit_test_teardown(a_cpu_that_is_offline_is_left_out, clean),
		cmocka_unit_test_teardown(what_one_cpu_cannot_count_is_counted_nowhere, clean),
		cmocka_unit_test_teardown(a_cpu_that_goes_takes_the_sum_with_it, clean),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
