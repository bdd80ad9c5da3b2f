#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

ssize_t read_text(const char *path, char *text, size_t size)
{
	int file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	size_t length = 0;
	ssize_t got = 0;
	while (length < size && (got = read(file, text + length, size - length)) > 0)
		length += (size_t)got;
	close(file);
	if (got < 0 || length == size)
		return -1;
	if (length > 0 && text[length - 1] == '\n')
		length--;
	text[length] = '\0';
	return (ssize_t)length;
}

void write_setting(const char *path, const char *value)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	size_t length = strlen(value);
	if (file < 0 || write(file, value, length) != (ssize_t)length)
		fail(path);
	close(file);
}

void need_argument(const char *name, char *value, size_t size)
{
	static char line[4096];
	if (read_text("/proc/cmdline", line, sizeof line) < 0)
		fail("/proc/cmdline");
	size_t name_length = strlen(name);
	char *rest = line;
	for (char *word; (word = strsep(&rest, " ")) != NULL;) {
		if (strncmp(word, name, name_length) != 0 || word[name_length] != '=')
			continue;
		if (strlen(word + name_length + 1) >= size)
			break;
		strcpy(value, word + name_length + 1);
		return;
	}
	errno = 0;
	fail(name);
}
