#include "init.h"
#include "mapper.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The data disk: ext4 in dm-crypt in dm-integrity. The supervisor derives the key from a secret of the operator and asks
 * for the disk over a socket with one line, "open <key>" or "format <key>"; the answer is one line, "ok" or why not.
 *
 * AES-256-XTS with HMAC-SHA-256 over every sector: 64 and 32 bytes of key. dm-integrity keeps the tags and a journal, so
 * that a power cut leaves no sector without its tag. What it keeps lies behind the first MiB, which is the supervisor's.
 */
#define DISK_NAME "vdb"
#define SOCKET NEW_ROOT ITEMS_DIRECTORY "/volume"
#define SUPERVISORS_DISK NEW_ROOT "/dev/cmr-data"
#define KEY_DIGITS 192
#define HEADER_SECTORS 2048
#define SECTOR_BYTES 512
#define BLOCK_BYTES 4096
#define BLOCK_SECTORS (BLOCK_BYTES / SECTOR_BYTES)
#define TAG_BYTES 32
#define MIN_DISK_BYTES (64ull * 1024 * 1024)
#define WIPED_BYTES (1024 * 1024)
#define TAGS "cmr-tags"
#define DATA "cmr-data"

/* What of the superblock of dm-integrity is read here; all of it is little-endian. */
struct superblock {
	char magic[8];
	uint8_t version, log2_interleave;
	uint16_t tag_bytes;
	uint32_t journal_sections;
	uint64_t provided_sectors;
};

static int devices = -1, listener = -1;
static int opened;

static void listen_for_supervisor(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
	    chmod(SOCKET, 0600) != 0 || chown(SOCKET, SUPERVISOR_ID, SUPERVISOR_ID) != 0 ||
	    listen(listener, 1) != 0)
		fail("the socket for the data disk");
}

void prepare_volume(void)
{
	listen_for_supervisor();
	devices = open("/dev", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (devices < 0)
		fail("/dev");
	struct stat disk;
	if (fstatat(devices, DISK_NAME, &disk, 0) != 0)
		return;
	/* The supervisor reads and writes the first MiB: how the key is derived, and what tells a wrong key. */
	if (mknod(SUPERVISORS_DISK, S_IFBLK | 0600, disk.st_rdev) != 0 ||
	    chown(SUPERVISORS_DISK, SUPERVISOR_ID, SUPERVISOR_ID) != 0)
		fail(SUPERVISORS_DISK);
}

/* A path to a device by its number, through the directory that nobody else has. */
static void device_path(char *path, size_t size, int64_t number)
{
	snprintf(path, size, "/proc/self/fd/%d/dm-%u", devices, minor((dev_t)number));
}

/* Past every cache: the kernel's own writes to the disk go past it too. */
static int read_superblock(int disk, struct superblock *found, int *blank)
{
	_Alignas(BLOCK_BYTES) static unsigned char block[BLOCK_BYTES];
	if (pread(disk, block, sizeof block, HEADER_SECTORS * SECTOR_BYTES) != (ssize_t)sizeof block)
		return -1;
	memcpy(found, block, sizeof *found);
	*blank = 1;
	for (size_t i = 0; i < sizeof block; i++)
		*blank &= block[i] == 0;
	return 0;
}

static int64_t map_tags(dev_t disk, uint64_t sectors)
{
	char parameters[128];
	snprintf(parameters, sizeof parameters, "%u:%u %d %d J 1 block_size:%d", major(disk), minor(disk),
		 HEADER_SECTORS, TAG_BYTES, BLOCK_BYTES);
	struct mapping tags = { TAGS, "integrity", parameters, sectors, 0 };
	return make_mapping(&tags);
}

static int64_t map_data(int64_t tags, const char *key, uint64_t sectors)
{
	char parameters[512];
	snprintf(parameters, sizeof parameters,
		 "capi:authenc(hmac(sha256),xts(aes))-plain64 %s 0 %u:%u 0 2 integrity:%d:aead sector_size:%d", key,
		 major((dev_t)tags), minor((dev_t)tags), TAG_BYTES, BLOCK_BYTES);
	struct mapping data = { DATA, "crypt", parameters, sectors, DM_SECURE_DATA_FLAG };
	int64_t made = make_mapping(&data);
	explicit_bzero(parameters, sizeof parameters);
	return made;
}

/* Sectors that were never written have no tag and cannot be read; those that are looked at on a new disk get one. */
static int wipe_ends(const char *path, uint64_t sectors)
{
	static const char zeros[WIPED_BYTES];
	int data = open(path, O_WRONLY | O_CLOEXEC);
	off_t last = (off_t)(sectors * SECTOR_BYTES) - WIPED_BYTES;
	int written = data >= 0 && pwrite(data, zeros, sizeof zeros, 0) == (ssize_t)sizeof zeros &&
		      pwrite(data, zeros, sizeof zeros, last) == (ssize_t)sizeof zeros && fsync(data) == 0;
	if (data >= 0)
		close(data);
	return written;
}

/*
 * The one program besides the service's that PID 1 starts: the maker of the file system, on a new disk. It makes no copies
 * of the superblock, for which it would read sectors that were never written; nothing here could use them.
 */
static int make_file_system(char *path)
{
	char *const command[] = { "/usr/sbin/mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-i", "1048576",
				  "-O", "sparse_super2,^resize_inode", "-E",
				  "num_backup_sb=0,nodiscard,lazy_itable_init=0,lazy_journal_init=0", path, NULL };
	char *const nothing[] = { NULL };
	pid_t maker = fork();
	if (maker == 0) {
		fcntl(devices, F_SETFD, 0);
		dup2(STDERR_FILENO, STDOUT_FILENO);
		execve(command[0], command, nothing);
		_exit(127);
	}
	int status = -1;
	return maker > 0 && waitpid(maker, &status, 0) == maker && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Null, or why the file system is not there. The mappings are made. */
static const char *mount_data(int64_t data, uint64_t sectors, int format)
{
	char path[64];
	device_path(path, sizeof path, data);
	if (format && (!wipe_ends(path, sectors) || !make_file_system(path)))
		return "format_failed";
	if (mount(path, LEDGER_DIRECTORY, "ext4", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOATIME, "errors=remount-ro") != 0)
		return "damaged";
	if (chown(LEDGER_DIRECTORY, WORKER_ID, WORKER_ID) == 0 && chmod(LEDGER_DIRECTORY, 0700) == 0)
		return NULL;
	umount2(LEDGER_DIRECTORY, 0);
	return "damaged";
}

/* Null, or why not. */
static const char *map_and_mount(int disk, const char *key, int format)
{
	struct stat status;
	struct superblock superblock;
	int blank;
	uint64_t bytes;
	if (fstat(disk, &status) != 0 || ioctl(disk, BLKGETSIZE64, &bytes) != 0 || bytes < MIN_DISK_BYTES)
		return "too_small";
	if (read_superblock(disk, &superblock, &blank) != 0)
		return "unreadable";
	if (format) {
		if (!blank)
			return "not_blank";
		/* The first mapping of a blank disk writes the superblock, which tells how much there is room for. */
		if (map_tags(status.st_rdev, BLOCK_SECTORS) < 0)
			return "format_failed";
		remove_mapping(TAGS);
		if (read_superblock(disk, &superblock, &blank) != 0)
			return "format_failed";
	}
	/* A superblock that is gone would be made anew by the kernel. */
	if (memcmp(superblock.magic, "integrt", sizeof superblock.magic) != 0 || superblock.tag_bytes != TAG_BYTES)
		return "damaged";
	uint64_t sectors = superblock.provided_sectors - superblock.provided_sectors % BLOCK_SECTORS;
	int64_t tags = map_tags(status.st_rdev, sectors);
	if (tags < 0)
		return "damaged";
	int64_t data = map_data(tags, key, sectors);
	const char *problem = data < 0 ? "damaged" : mount_data(data, sectors, format);
	if (problem != NULL) {
		remove_mapping(DATA);
		remove_mapping(TAGS);
	}
	return problem;
}

static const char *open_volume(const char *key, int format)
{
	if (opened)
		return "already_open";
	int disk = openat(devices, DISK_NAME, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (disk < 0)
		return "missing";
	const char *problem = map_and_mount(disk, key, format);
	close(disk);
	opened = problem == NULL;
	return problem;
}

static const char *answer_to(char *line)
{
	char *key = strchr(line, ' ');
	if (key == NULL)
		return "malformed";
	*key++ = '\0';
	int format = strcmp(line, "format") == 0;
	if ((!format && strcmp(line, "open") != 0) || strlen(key) != KEY_DIGITS ||
	    strspn(key, "0123456789abcdef") != KEY_DIGITS)
		return "malformed";
	const char *problem = open_volume(key, format);
	return problem == NULL ? "ok" : problem;
}

int volume_requests(void)
{
	return listener;
}

void answer_volume_request(void)
{
	char line[KEY_DIGITS + 16];
	struct ucred peer;
	socklen_t size = sizeof peer;
	int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct timeval patience = { .tv_sec = 5 };
	if (connection < 0)
		return;
	setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	size_t length = 0;
	ssize_t got = 1;
	while (got > 0 && length < sizeof line - 1 && memchr(line, '\n', length) == NULL) {
		got = read(connection, line + length, sizeof line - 1 - length);
		length += got > 0 ? (size_t)got : 0;
	}
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	int known = getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == SUPERVISOR_ID;
	const char *answer = known ? answer_to(line) : "malformed";
	explicit_bzero(line, sizeof line);
	if (write(connection, answer, strlen(answer)) < 0 || write(connection, "\n", 1) < 0)
		errno = 0;
	close(connection);
}

/* Everything is on the disk when this returns. */
void close_volume(void)
{
	if (!opened)
		return;
	umount2(LEDGER_DIRECTORY, 0);
	remove_mapping(DATA);
	remove_mapping(TAGS);
}
