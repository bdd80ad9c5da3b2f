#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static void mount_or_fail(const char *type, const char *target)
{
	if (mkdir(target, 0755) != 0 && errno != EEXIST)
		fail(target);
	if (mount(type, target, type, MS_NOSUID | MS_NOEXEC, NULL) != 0)
		fail(target);
}

int main(void)
{
	if (getpid() != 1)
		return 1;
	umask(022);
	mount_or_fail("devtmpfs", "/dev");
	open_console();
	mount_or_fail("proc", "/proc");
	mount_or_fail("sysfs", "/sys");

	load_modules();
	open_mapper();
	open_verified_root();
	enter_root();
	int status = run_service();
	printf("{\"event\":\"service_ended\",\"status\":%d}\n", status);
	close_volume();
	errno = 0;
	fail("the machine is switched off");
}
