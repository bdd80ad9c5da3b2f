#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_FILES 1048576
#define REPORTS "/sys/kernel/config/tsm/report"

/* The one program of this image. */
static char *const COMMAND[] = { "/usr/bin/node", "/app/src/host/guest/main.js", NULL };
static char *const ENVIRONMENT[] = { "PATH=/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", "NODE_ENV=production", NULL };

/*
 * The supervisor starts the daemon and the workers under accounts of their own, and ends them. The kernel's report
 * interface makes files that belong to root, whoever asks: where it is there, one right more stays, to pass by file
 * permissions, which /usr/bin/run-as leaves to the daemon alone.
 */
static unsigned int kept_capabilities(void)
{
	unsigned int accounts = 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SETPCAP | 1u << CAP_KILL;
	return access(REPORTS, F_OK) == 0 ? accounts | 1u << CAP_DAC_OVERRIDE : accounts;
}

static void drop_rights(void)
{
	unsigned int kept = kept_capabilities();
	struct rlimit files = { OPEN_FILES, OPEN_FILES }, none = { 0, 0 };
	if (setrlimit(RLIMIT_NOFILE, &files) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
		fail("limits");
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (capability > 31 || (kept & 1u << capability) == 0)
			if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
				fail("capabilities");
	if (prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0) != 0)
		fail("securebits");
	if (setgroups(0, NULL) != 0 || setresgid(SUPERVISOR_ID, SUPERVISOR_ID, SUPERVISOR_ID) != 0 ||
	    setresuid(SUPERVISOR_ID, SUPERVISOR_ID, SUPERVISOR_ID) != 0)
		fail("the service's account");
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { kept, kept, kept }, { 0, 0, 0 } };
	if (syscall(SYS_capset, &header, data) != 0)
		fail("capabilities");
	for (int capability = 0; capability < 32; capability++)
		if ((kept & 1u << capability) != 0)
			if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0)
				fail("capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		fail("no_new_privs");
}

static void become_service(const sigset_t *signals)
{
	setsid();
	drop_rights();
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	execve(COMMAND[0], COMMAND, ENVIRONMENT);
	_exit(127);
}

#define MOST_WATCHED 18

/*
 * Runs the service, reaps what loses its parent, opens the data disk when asked, and passes on the request to stop: the
 * power button, Ctrl-Alt-Del (SIGINT to PID 1) or SIGTERM. When the service ends, so does the machine: nothing else is
 * worth running.
 */
int run_service(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	reboot(RB_DISABLE_CAD);
	int arriving = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (arriving < 0)
		fail("signalfd");

	pid_t service = fork();
	if (service < 0)
		fail("fork");
	if (service == 0)
		become_service(&signals);
	say("the service is started");

	struct pollfd watched[MOST_WATCHED] = {
		{ .fd = arriving, .events = POLLIN },
		{ .fd = volume_requests(), .events = POLLIN },
	};
	size_t count = 2 + watch_power_button(watched + 2, MOST_WATCHED - 2);
	for (;;) {
		if (poll(watched, count, -1) < 0 && errno != EINTR)
			fail("poll");
		int stop = 0, status;
		struct signalfd_siginfo signal;
		while (read(arriving, &signal, sizeof signal) == (ssize_t)sizeof signal)
			stop |= signal.ssi_signo != SIGCHLD;
		for (size_t i = 2; i < count; i++)
			stop |= (watched[i].revents & POLLIN) != 0 && pressed(watched[i].fd);
		if (stop)
			kill(service, SIGTERM);
		if ((watched[1].revents & POLLIN) != 0)
			answer_volume_request();
		for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
			if (ended == service)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}
