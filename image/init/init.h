/*
 * PID 1 of the guest. It sets up what needs root, starts one program without any right, and ends the machine
 * with it. There is no shell, no login and no way to hand it a command.
 */
#ifndef INIT_H
#define INIT_H

/* glibc shows setresuid and its like to those alone who ask. */
#define _GNU_SOURCE

#include <stddef.h>
#include <sys/types.h>

/* The one account that anything but PID 1 runs under. */
#define SERVICE_ID 10001

/* Where the verified root is mounted before it becomes the root. */
#define NEW_ROOT "/root"

/* What the host handed over, readable by the service alone. */
#define ITEMS_DIRECTORY NEW_ROOT "/run/cmr"

/* Says what happened, with errno's meaning where one is set, and ends the machine. Never returns. */
void fail(const char *what) __attribute__((noreturn));

/* One line on the console. */
void say(const char *text);

/* Whole text of a small file without its last newline; -1 when it cannot be read or does not fit. */
ssize_t read_text(const char *path, char *text, size_t size);

/* Writes a setting of the kernel; a setting that cannot be made ends the machine. */
void write_setting(const char *path, const char *value);

/* The value of `name=` on the measured command line; ends the machine when it is not there. */
void need_argument(const char *name, char *value, size_t size);

void load_modules(void);
void open_verified_root(void);
void copy_items(void);
void start_network(void);
void enter_root(void);

/* Starts the service and returns when it has ended. */
int run_service(void);

#endif
