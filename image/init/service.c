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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN_FILES 1048576
#define REPORTS "/sys/kernel/config/tsm/report"

/* The one program of this image. */
static char *const COMMAND[] = { "/usr/bin/node", "/app/src/host/guest/main.js", NULL };
static char *const ENVIRONMENT[] = { "PATH=/usr/bin", "HOME=/tmp", "TMPDIR=/tmp", "NODE_ENV=production", NULL };

/*
 * The kernel's report interface makes files that belong to root, whoever asks. Where it is there, this one right stays:
 * to pass by file permissions. The root is read-only and what else is mounted belongs to the service anyway.
 */
static unsigned int kept_capability(void)
{
	return access(REPORTS, F_OK) == 0 ? 1u << CAP_DAC_OVERRIDE : 0;
}

static void drop_rights(void)
{
	unsigned int kept = kept_capability();
	struct rlimit files = { OPEN_FILES, OPEN_FILES }, none = { 0, 0 };
	if (setrlimit(RLIMIT_NOFILE, &files) != 0 || setrlimit(RLIMIT_CORE, &none) != 0)
		fail("limits");
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (capability > 31 || (kept & 1u << capability) == 0)
			if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
				fail("capabilities");
	if (prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0) != 0)
		fail("securebits");
	if (setgroups(0, NULL) != 0 || setresgid(SERVICE_ID, SERVICE_ID, SERVICE_ID) != 0 ||
	    setresuid(SERVICE_ID, SERVICE_ID, SERVICE_ID) != 0)
		fail("the service's account");
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { kept, kept, kept }, { 0, 0, 0 } };
	if (syscall(SYS_capset, &header, data) != 0)
		fail("capabilities");
	if (kept != 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) != 0)
		fail("capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		fail("no_new_privs");
}

static void become_service(const sigset_t *signals)
{
	int nothing = open("/dev/null", O_RDONLY);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0)
		_exit(126);
	if (nothing != STDIN_FILENO)
		close(nothing);
	setsid();
	drop_rights();
	sigprocmask(SIG_UNBLOCK, signals, NULL);
	execve(COMMAND[0], COMMAND, ENVIRONMENT);
	_exit(127);
}

/*
 * Runs the service, reaps what loses its parent, and passes on the request to stop that Ctrl-Alt-Del makes (SIGINT to
 * PID 1). When the service ends, so does the machine: nothing else is worth running.
 */
int run_service(void)
{
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	reboot(RB_DISABLE_CAD);

	pid_t service = fork();
	if (service < 0)
		fail("fork");
	if (service == 0)
		become_service(&signals);
	say("the service is started");

	for (;;) {
		int signal = 0, status;
		sigwait(&signals, &signal);
		if (signal == SIGINT)
			kill(service, SIGTERM);
		for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;)
			if (ended == service)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}
