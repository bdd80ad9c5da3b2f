/*
 * run-as <account> <program> [arguments]: becomes the account of the guest's daemon or worker, gives up every right
 * that the account does not need, for good, and executes the program. The supervisor starts its parts by it.
 */
#define _GNU_SOURCE

#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REPORTS "/sys/kernel/config/tsm/report"

static const struct account {
	const char *name;
	uid_t id;
	/* Reads attestation reports, whose files belong to root. */
	int captures;
} ACCOUNTS[] = {
	{ "daemon", 10002, 1 },
	{ "worker", 10003, 0 },
};

static int become(const struct account *account)
{
	unsigned int kept = account->captures && access(REPORTS, F_OK) == 0 ? 1u << CAP_DAC_OVERRIDE : 0;
	for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (capability > 31 || (kept & 1u << capability) == 0)
			if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
				return -1;
	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0)
		return -1;
	if (setgroups(0, NULL) != 0 || setresgid(account->id, account->id, account->id) != 0 ||
	    setresuid(account->id, account->id, account->id) != 0)
		return -1;
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { { kept, kept, kept }, { 0, 0, 0 } };
	if (syscall(SYS_capset, &header, data) != 0)
		return -1;
	if (kept != 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_DAC_OVERRIDE, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

int main(int count, char **words)
{
	for (size_t i = 0; count > 2 && i < sizeof ACCOUNTS / sizeof ACCOUNTS[0]; i++) {
		if (strcmp(words[1], ACCOUNTS[i].name) != 0)
			continue;
		if (become(&ACCOUNTS[i]) != 0) {
			perror("run-as");
			return 126;
		}
		execv(words[2], words + 2);
		perror("run-as");
		return 127;
	}
	fputs("run-as: daemon|worker, and a program\n", stderr);
	return 125;
}
