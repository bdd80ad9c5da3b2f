/*
 * PID 1 of a machine that measures what the encryption of the data disk costs, and ends. Never part of an image:
 * scripts/disk-bench.ts builds it with the modules and the device-mapper code of the guest's own PID 1.
 */
#include "init.h"
#include "mapper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>
#include <linux/fs.h>

#define DISK "/dev/vda"
#define BLOCK 4096
#define CHUNK (1024 * 1024)
#define CHUNKS 32
#define COMMITS 400
#define READS 2000
/* Enough for the superblock and the journal of dm-integrity on the disks that are measured. */
#define TAG_BYTES 32
#define KEYS 192

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Any order that jumps about, the same for each. */
static off_t place(unsigned int i)
{
	return (off_t)(i * 2654435761u % (CHUNKS * (CHUNK / BLOCK))) * BLOCK;
}

static void must(int holds, const char *what)
{
	if (!holds)
		fail(what);
}

/* Writes, commits and reads on one device, past every cache of the guest. */
static void measure(const char *name, const char *path)
{
	static unsigned char *bytes;
	if (bytes == NULL)
		must(posix_memalign((void **)&bytes, BLOCK, CHUNK) == 0, "memory");
	memset(bytes, 0x5a, CHUNK);
	int device = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	must(device >= 0, path);

	double start = now();
	for (int i = 0; i < CHUNKS; i++)
		must(pwrite(device, bytes, CHUNK, (off_t)i * CHUNK) == CHUNK, "a write");
	must(fsync(device) == 0, "fsync");
	double written = now();
	for (unsigned int i = 0; i < COMMITS; i++)
		must(pwrite(device, bytes, BLOCK, place(i)) == BLOCK && fdatasync(device) == 0, "a commit");
	double committed = now();
	for (int i = 0; i < CHUNKS; i++)
		must(pread(device, bytes, CHUNK, (off_t)i * CHUNK) == CHUNK, "a read");
	double streamed = now();
	for (unsigned int i = 0; i < READS; i++)
		must(pread(device, bytes, BLOCK, place(i)) == BLOCK, "a small read");
	double done = now();
	close(device);
	printf("{\"event\":\"disk\",\"layers\":\"%s\",\"write_mib_s\":%.1f,\"commit_us\":%.0f,\"read_mib_s\":%.1f,\"read_us\":%.0f}\n",
	       name, CHUNKS / (written - start), (committed - written) / COMMITS * 1e6,
	       CHUNKS / (streamed - committed), (done - streamed) / READS * 1e6);
	fflush(stdout);
}

static void device_name(char *path, size_t size, int64_t number)
{
	snprintf(path, size, "/dev/dm-%u", minor((dev_t)number));
	for (int waited = 0; access(path, F_OK) != 0 && waited < 3000; waited++)
		usleep(10000);
}

int main(void)
{
	umask(022);
	must(mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) == 0, "/dev");
	open_console();
	must(mount("proc", "/proc", "proc", 0, NULL) == 0 && mount("sysfs", "/sys", "sysfs", 0, NULL) == 0, "/proc");
	load_modules();
	open_mapper();
	for (int waited = 0; access(DISK, F_OK) != 0 && waited < 3000; waited++)
		usleep(10000);

	struct stat status;
	uint64_t bytes;
	int disk = open(DISK, O_RDONLY | O_CLOEXEC);
	must(disk >= 0 && fstat(disk, &status) == 0 && ioctl(disk, BLKGETSIZE64, &bytes) == 0, DISK);
	close(disk);
	char key[KEYS + 1], parameters[512], path[64];
	for (int i = 0; i < KEYS; i++)
		key[i] = "0123456789abcdef"[(i * 7 + i / 16) % 16];
	key[KEYS] = '\0';

	measure("none", DISK);

	snprintf(parameters, sizeof parameters, "aes-xts-plain64 %.128s 0 %u:%u 0 1 sector_size:%d", key,
		 major(status.st_rdev), minor(status.st_rdev), BLOCK);
	struct mapping plain = { "plain", "crypt", parameters, bytes / 512, 0 };
	int64_t made = make_mapping(&plain);
	must(made >= 0, "dm-crypt");
	device_name(path, sizeof path, made);
	measure("dm-crypt", path);
	remove_mapping("plain");

	/* As image/init/volume.c has it, with a journal; and without one, to tell the two costs apart. */
	static const struct { const char *name, *mode; } WAYS[] = {
		{ "dm-crypt, dm-integrity with a journal", "J" },
		{ "dm-crypt, dm-integrity without a journal", "D" },
	};
	for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
		static char zeros[BLOCK];
		disk = open(DISK, O_RDWR | O_CLOEXEC);
		must(disk >= 0 && pwrite(disk, zeros, sizeof zeros, 0) == BLOCK && fsync(disk) == 0, "a blank disk");
		close(disk);
		snprintf(parameters, sizeof parameters, "%u:%u 0 %d %s 1 block_size:%d", major(status.st_rdev),
			 minor(status.st_rdev), TAG_BYTES, WAYS[i].mode, BLOCK);
		/* Three quarters leave room for tags and journal. */
		uint64_t sectors = bytes / 512 * 3 / 4 / 8 * 8;
		struct mapping tags = { "tags", "integrity", parameters, sectors, 0 };
		int64_t below = make_mapping(&tags);
		must(below >= 0, "dm-integrity");
		char cipher[512];
		snprintf(cipher, sizeof cipher,
			 "capi:authenc(hmac(sha256),xts(aes))-plain64 %s 0 %u:%u 0 2 integrity:%d:aead sector_size:%d", key,
			 major((dev_t)below), minor((dev_t)below), TAG_BYTES, BLOCK);
		struct mapping data = { "data", "crypt", cipher, sectors, 0 };
		made = make_mapping(&data);
		must(made >= 0, "dm-crypt with dm-integrity");
		device_name(path, sizeof path, made);
		measure(WAYS[i].name, path);
		remove_mapping("data");
		remove_mapping("tags");
	}
	reboot(RB_POWER_OFF);
	return 0;
}
