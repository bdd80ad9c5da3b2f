#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/reboot.h>
#include <unistd.h>

#define SERIAL_PORT "/dev/ttyS0"

/* The kernel has no console (the command line says so), so its messages, which may hold memory, stay inside. */
void open_console(void)
{
	int serial = open(SERIAL_PORT, O_WRONLY | O_NOCTTY);
	int nothing = open("/dev/null", O_RDWR);
	if (serial < 0)
		serial = nothing;
	if (serial < 0)
		return;
	/* The lowest descriptors may be free or taken: neither is lost on the way. */
	int output = fcntl(serial, F_DUPFD_CLOEXEC, 10);
	int other = fcntl(nothing, F_DUPFD_CLOEXEC, 10);
	dup2(other, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(other, STDERR_FILENO);
	close(output);
	close(other);
	if (serial > STDERR_FILENO)
		close(serial);
	if (nothing > STDERR_FILENO && nothing != serial)
		close(nothing);
}

void say(const char *text)
{
	printf("{\"event\":\"init\",\"message\":\"%s\"}\n", text);
	fflush(stdout);
}

void fail(const char *what)
{
	const char *meaning = errno == 0 ? "" : strerror(errno);
	printf("{\"event\":\"init_failed\",\"message\":\"%s\",\"error\":\"%s\"}\n", what, meaning);
	fflush(stdout);
	/* A child that could not become the service only ends itself; PID 1 sees it and does the rest. */
	if (getpid() != 1)
		_exit(126);
	sync();
	reboot(RB_POWER_OFF);
	/* Without a way to switch off, stopping is next best: nothing runs any more. */
	for (;;)
		pause();
}
