/* Records what a process does to the files below one directory: preloaded, it stands before the C library.

   POWERCUT_ROOT names the directory, POWERCUT_LOG the file that gets one record an event (see tests/powercut/record.py
   for how they are read). A change and its record are made under one lock, so the order of the log is the order on the
   disk; of a sync the beginning and the end are recorded, and other threads go on between them. Files are known by
   their inode numbers, names by their paths below the root. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum op {
    CREATE = 1, MKDIR, WRITE, TRUNCATE, ALLOCATE, SYNC_BEGIN, SYNC_END, RENAME, UNLINK, RMDIR, MARK, UNSEEN
};
enum { DURABLE = 1, DIRECTORY = 2, KEEP_SIZE = 4 };
enum { PARTS_MAX = 1024 };

struct header {
    uint8_t op;
    uint8_t flags;
    uint16_t path_size;
    uint32_t other_size;
    uint64_t inode;
    int64_t at;
    uint64_t data_size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_size;
static int log_fd = -1;
static int64_t syncs;

static void put(const struct header *header, const char *path, const char *other, const struct iovec *data, int count)
{
    struct iovec parts[PARTS_MAX];
    int used = 0;
    parts[used++] = (struct iovec){(void *)header, sizeof *header};
    if (header->path_size)
        parts[used++] = (struct iovec){(void *)path, header->path_size};
    if (header->other_size)
        parts[used++] = (struct iovec){(void *)other, header->other_size};
    uint64_t left = header->data_size;
    for (int i = 0; i < count && left; i++) {
        size_t size = data[i].iov_len < left ? data[i].iov_len : left;
        if (used == PARTS_MAX)
            abort();
        parts[used++] = (struct iovec){data[i].iov_base, size};
        left -= size;
    }
    size_t whole = sizeof *header + header->path_size + header->other_size + header->data_size;
    if (syscall(SYS_writev, log_fd, parts, used) != (long)whole)
        abort();
}

/* The part of a path that is below the root, NULL where it is elsewhere. */
static const char *below(const char *path)
{
    if (log_fd < 0 || strncmp(path, root, root_size))
        return NULL;
    if (path[root_size] == '\0')
        return path + root_size;
    return path[root_size] == '/' ? path + root_size + 1 : NULL;
}

static const char *of_descriptor(int fd, char *buffer)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, buffer, PATH_MAX - 1);
    if (size < 0)
        return NULL;
    buffer[size] = '\0';
    return below(buffer);
}

static const char *resolve(int folder, const char *path, char *buffer)
{
    if (log_fd < 0)
        return NULL;
    if (path[0] == '/') {
        snprintf(buffer, PATH_MAX, "%s", path);
        return below(buffer);
    }
    if (folder == AT_FDCWD) {
        if (!getcwd(buffer, PATH_MAX))
            return NULL;
    } else if (!of_descriptor(folder, buffer)) {
        return NULL;
    }
    size_t size = strlen(buffer);
    snprintf(buffer + size, PATH_MAX - size, "/%s", path);
    return below(buffer);
}

/* LMDB's table of readers is shared memory, not data. */
static int is_data(const char *path)
{
    size_t size = path ? strlen(path) : 0;
    return path && !(size >= 8 && !strcmp(path + size - 8, "lock.mdb"));
}

static int data_descriptor(int fd, struct stat *status)
{
    char buffer[PATH_MAX];
    if (log_fd < 0 || fd == log_fd || !is_data(of_descriptor(fd, buffer)))
        return 0;
    return !fstat(fd, status);
}

static void note_path(enum op op, const char *path, uint64_t inode)
{
    struct header header = {.op = op, .path_size = strlen(path), .inode = inode};
    put(&header, path, NULL, NULL, 0);
}

static void note_file(enum op op, int flags, uint64_t inode, int64_t at)
{
    struct header header = {.op = op, .flags = flags, .inode = inode, .at = at};
    put(&header, NULL, NULL, NULL, 0);
}

__attribute__((constructor)) static void begin(void)
{
    const char *folder = getenv("POWERCUT_ROOT"), *log = getenv("POWERCUT_LOG");
    struct stat status;
    if (!folder || !log || stat(folder, &status))
        return;
    snprintf(root, sizeof root, "%s", folder);
    root_size = strlen(root);
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd >= 0)
        note_path(MKDIR, "", status.st_ino);
}

/* What the workload wants to have noted between its writes. */
void powercut_mark(const char *data, size_t size)
{
    pthread_mutex_lock(&lock);
    struct header header = {.op = MARK, .data_size = size};
    struct iovec part = {(void *)data, size};
    if (log_fd >= 0)
        put(&header, NULL, NULL, &part, 1);
    pthread_mutex_unlock(&lock);
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    char buffer[PATH_MAX];
    const char *name = flags & (O_CREAT | O_TRUNC) ? resolve(folder, path, buffer) : NULL;
    if (!is_data(name))
        return syscall(SYS_openat, folder, path, flags, mode);
    pthread_mutex_lock(&lock);
    struct stat before, after;
    int there = !fstatat(folder, path, &before, 0);
    int fd = syscall(SYS_openat, folder, path, flags, mode);
    int error = errno;
    if (fd >= 0 && !fstat(fd, &after)) {
        if (!there)
            note_path(CREATE, name, after.st_ino);
        else if (flags & O_TRUNC && before.st_size)
            note_file(TRUNCATE, 0, after.st_ino, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int folder, const char *path, int flags, ...) { MODE(flags) return open_at(folder, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE(flags) return open_at(folder, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

static ssize_t do_write(int fd, const struct iovec *data, int count, off_t at)
{
    if (at < 0)
        return syscall(SYS_writev, fd, data, count);
    return syscall(SYS_pwritev, fd, data, count, (long)at, 0L);
}

/* at is -1 where the descriptor's own offset is meant. */
static ssize_t write_at(int fd, const struct iovec *data, int count, off_t at)
{
    struct stat status;
    if (!data_descriptor(fd, &status))
        return do_write(fd, data, count, at);
    pthread_mutex_lock(&lock);
    ssize_t done = do_write(fd, data, count, at);
    int error = errno;
    if (done > 0) {
        int durable = fcntl(fd, F_GETFL) & O_DSYNC ? DURABLE : 0; /* O_SYNC has the bit too */
        off_t begin = at < 0 ? lseek(fd, 0, SEEK_CUR) - done : at;
        struct header header = {WRITE, durable, 0, 0, status.st_ino, begin, done};
        put(&header, NULL, NULL, data, count);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *data, size_t size)
{
    struct iovec part = {(void *)data, size};
    return write_at(fd, &part, 1, -1);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at)
{
    struct iovec part = {(void *)data, size};
    return write_at(fd, &part, 1, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) { return pwrite(fd, data, size, at); }
ssize_t writev(int fd, const struct iovec *data, int count) { return write_at(fd, data, count, -1); }
ssize_t pwritev(int fd, const struct iovec *data, int count, off_t at) { return write_at(fd, data, count, at); }
ssize_t pwritev64(int fd, const struct iovec *data, int count, off64_t at) { return write_at(fd, data, count, at); }

int ftruncate(int fd, off_t size)
{
    struct stat status;
    if (!data_descriptor(fd, &status))
        return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_ftruncate, fd, size);
    int error = errno;
    if (!result && size != status.st_size)
        note_file(TRUNCATE, 0, status.st_ino, size);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int fallocate(int fd, int mode, off_t at, off_t size)
{
    struct stat status;
    if (!data_descriptor(fd, &status))
        return syscall(SYS_fallocate, fd, mode, at, size);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_fallocate, fd, mode, at, size);
    int error = errno;
    if (!result)
        note_file(mode & ~FALLOC_FL_KEEP_SIZE ? UNSEEN : ALLOCATE, mode & FALLOC_FL_KEEP_SIZE ? KEEP_SIZE : 0,
                  status.st_ino, at + size);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fallocate64(int fd, int mode, off64_t at, off64_t size) { return fallocate(fd, mode, at, size); }
int posix_fallocate(int fd, off_t at, off_t size) { return fallocate(fd, 0, at, size) ? errno : 0; }
int posix_fallocate64(int fd, off64_t at, off64_t size) { return posix_fallocate(fd, at, size); }

static int sync_by(long call, int fd)
{
    struct stat status;
    if (!data_descriptor(fd, &status))
        return syscall(call, fd);
    int flags = S_ISDIR(status.st_mode) ? DIRECTORY : 0;
    pthread_mutex_lock(&lock);
    int64_t number = ++syncs;
    note_file(SYNC_BEGIN, flags, status.st_ino, number);
    pthread_mutex_unlock(&lock);
    int result = syscall(call, fd);
    int error = errno;
    pthread_mutex_lock(&lock);
    if (!result)
        note_file(SYNC_END, flags, status.st_ino, number);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }

static int rename_at(int folder, const char *path, int new_folder, const char *new_path, unsigned flags)
{
    char buffer[PATH_MAX], other_buffer[PATH_MAX];
    const char *name = resolve(folder, path, buffer), *other = resolve(new_folder, new_path, other_buffer);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_renameat2, folder, path, new_folder, new_path, flags);
    int error = errno;
    if (!result && name && other) {
        struct header header = {.op = RENAME, .path_size = strlen(name), .other_size = strlen(other)};
        put(&header, name, other, NULL, 0);
    } else if (!result && (name || other)) {
        note_file(UNSEEN, 0, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int rename(const char *path, const char *to) { return rename_at(AT_FDCWD, path, AT_FDCWD, to, 0); }
int renameat(int folder, const char *path, int other, const char *to) { return rename_at(folder, path, other, to, 0); }
int renameat2(int folder, const char *path, int other, const char *to, unsigned flags)
{
    return rename_at(folder, path, other, to, flags);
}

int unlinkat(int folder, const char *path, int flags)
{
    char buffer[PATH_MAX];
    const char *name = resolve(folder, path, buffer);
    if (!is_data(name))
        return syscall(SYS_unlinkat, folder, path, flags);
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_unlinkat, folder, path, flags);
    int error = errno;
    if (!result)
        note_path(flags & AT_REMOVEDIR ? RMDIR : UNLINK, name, 0);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }

int mkdirat(int folder, const char *path, mode_t mode)
{
    char buffer[PATH_MAX];
    const char *name = resolve(folder, path, buffer);
    if (!name)
        return syscall(SYS_mkdirat, folder, path, mode);
    struct stat status;
    pthread_mutex_lock(&lock);
    int result = syscall(SYS_mkdirat, folder, path, mode);
    int error = errno;
    if (!result && !fstatat(folder, path, &status, 0))
        note_path(MKDIR, name, status.st_ino);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

/* Ways to change a file that leave no record: the log says so, and is no good then. */
static void unseen(int fd)
{
    struct stat status;
    if (!data_descriptor(fd, &status))
        return;
    pthread_mutex_lock(&lock);
    note_file(UNSEEN, 0, status.st_ino, 0);
    pthread_mutex_unlock(&lock);
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t at)
{
    if (fd >= 0 && protection & PROT_WRITE && flags & MAP_SHARED)
        unseen(fd);
    return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, at);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd, off64_t at)
{
    return mmap(address, size, protection, flags, fd, at);
}

ssize_t sendfile(int to, int from, off_t *at, size_t size)
{
    unseen(to);
    return syscall(SYS_sendfile, to, from, at, size);
}

ssize_t sendfile64(int to, int from, off64_t *at, size_t size) { return sendfile(to, from, at, size); }

ssize_t copy_file_range(int from, off64_t *at, int to, off64_t *to_at, size_t size, unsigned flags)
{
    unseen(to);
    return syscall(SYS_copy_file_range, from, at, to, to_at, size, flags);
}
