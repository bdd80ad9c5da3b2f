#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>

#define SECURITY "/sys/kernel/security"

/* The command line asks for it; a kernel that did not do it must not serve. */
static void need_lockdown(void)
{
	char state[128];
	if (mount("securityfs", SECURITY, "securityfs", MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) != 0)
		fail(SECURITY);
	if (read_text(SECURITY "/lockdown", state, sizeof state) < 0)
		fail(SECURITY "/lockdown");
	errno = 0;
	if (strstr(state, "[confidentiality]") == NULL)
		fail("the kernel is not locked down");
	if (umount2(SECURITY, 0) != 0)
		fail(SECURITY);
}

/* Nothing here switches it on; memory must never reach a disk of the host's. */
static void need_no_swap(void)
{
	char table[1024];
	if (read_text("/proc/swaps", table, sizeof table) < 0)
		return;
	errno = 0;
	if (strchr(table, '\n') != NULL)
		fail("there is swap");
}

/* No debugging of one process by another, no further modules, no other kernel, no namespaces, no dumps, no SysRq. */
void harden_kernel(void)
{
	need_lockdown();
	need_no_swap();
	write_setting("/proc/sys/kernel/sysrq", "0");
	write_setting("/proc/sys/kernel/yama/ptrace_scope", "3");
	write_setting("/proc/sys/kernel/kptr_restrict", "2");
	write_setting("/proc/sys/kernel/dmesg_restrict", "1");
	write_setting("/proc/sys/kernel/unprivileged_bpf_disabled", "1");
	write_setting("/proc/sys/kernel/kexec_load_disabled", "1");
	write_setting("/proc/sys/kernel/core_pattern", "/dev/null");
	write_setting("/proc/sys/fs/suid_dumpable", "0");
	write_setting("/proc/sys/user/max_user_namespaces", "0");
	write_setting("/proc/sys/fs/nr_open", "1048576");
	/* The ports that are open to the outside; the service has no right of root to take them. */
	write_setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "80");
	write_setting("/proc/sys/kernel/modules_disabled", "1");
}
