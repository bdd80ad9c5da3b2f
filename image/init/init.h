/*
 * PID 1 of the guest. It sets up what needs root, starts one program under an account without rights to the rest, opens
 * the data disk when that program has the key, and ends the machine with it. There is no shell, no login and no way to
 * hand it a command.
 */
#ifndef INIT_H
#define INIT_H

/* glibc shows setresuid and its like to those alone who ask. */
#define _GNU_SOURCE

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>

/* The accounts: of the supervisor, of the enclave daemon, and of the worker, which parses what strangers send. */
#define SUPERVISOR_ID 10001
#define DAEMON_ID 10002
#define WORKER_ID 10003

/* Where the verified root is mounted before it becomes the root. */
#define NEW_ROOT "/root"

/* What the host handed over. */
#define ITEMS_DIRECTORY "/run/cmr"

/* The worker's own directory: in memory, or the data disk. */
#define LEDGER_DIRECTORY "/var/lib/cmr/storage"

/* Makes the serial port the standard output. Nothing but lines of JSON is written there. */
void open_console(void);

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
void open_mapper(void);
void open_verified_root(void);
void copy_items(void);
void copy_acpi_tables(void);
void start_network(void);
void harden_kernel(void);
void enter_root(void);

/*
 * The power button: opened while the devices can be reached. Fills in what is to be polled and returns how much that is;
 * pressed() tells whether the button was pressed.
 */
void open_power_button(void);
size_t watch_power_button(struct pollfd *watched, size_t room);
int pressed(int file);

/* The data disk: prepared while the devices can be reached, then one request at a time from the supervisor. */
void prepare_volume(void);
int volume_requests(void);
void answer_volume_request(void);
void close_volume(void);

/* Starts the service and returns when it has ended. */
int run_service(void);

#endif
