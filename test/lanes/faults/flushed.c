/*
 * Simulates a disk with power cuts. This preloaded library copies all flushed data to a second folder,
 * and nothing else.
 *
 *   LIVE     the watched folder
 *   FLUSHED  the state after a power cut: `<inode>` contains a file's flushed bytes, `<inode>.names` a
 *            folder's flushed entries
 *   FAILING  optional, `every-times`: of every `every` flushes the last `times` fail with EIO. Like Linux, it then
 *            marks the bytes as written, so that no later flush writes them.
 *
 * The model is as strict as POSIX allows: bytes survive after a flush of the file, names after a flush of the folder.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
#define MOST_FILES 8192
#define MOST_PAGES (1 << 18)

struct watched {
  ino_t inode;
  /* One byte for each page: written since the last flush. */
  unsigned char *dirty;
  size_t pages;
};

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static struct watched files[MOST_FILES];
static size_t known;
static const char *live, *flushed;
static long flushes, every = 1, times = 0;

static void give_up(const char *why) {
  fprintf(stderr, "flushed.c: %s: %s\n", why, strerror(errno));
  abort();
}

/* Opened with O_PATH, so that the inode number is not reused while we run. */
static struct watched *watch(const char *path, ino_t inode) {
  for (size_t i = 0; i < known; i++)
    if (files[i].inode == inode) return &files[i];
  if (known == MOST_FILES) give_up("too many files");
  if (open(path, O_PATH | O_CLOEXEC) < 0) give_up("a file cannot be held");
  files[known] = (struct watched){inode, calloc(MOST_PAGES, 1), 0};
  return &files[known++];
}

static struct watched *watched_file(int fd, struct stat *is) {
  char link[64], path[4096];
  if (!live || fstat(fd, is) != 0 || !(S_ISREG(is->st_mode) || S_ISDIR(is->st_mode))) return NULL;
  for (size_t i = 0; i < known; i++)
    if (files[i].inode == is->st_ino) return &files[i];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return NULL;
  path[length] = 0;
  if (strncmp(path, live, strlen(live)) != 0) return NULL;
  return watch(link, is->st_ino);
}

static int kept(ino_t inode, const char *ending, int flags) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%lu%s", flushed, (unsigned long)inode, ending);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
  if (fd < 0) give_up(path);
  return fd;
}

static void keep_bytes(int fd, struct watched *file, const struct stat *is) {
  char page[PAGE], link[64];
  int from = fd;
  if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY) {
    /* Never reopen SQLite's files: closing a second descriptor would release SQLite's locks. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    from = open(link, O_RDONLY | O_CLOEXEC);
  }
  int to = kept(is->st_ino, "", 0);
  for (size_t number = 0; number < file->pages; number++) {
    if (!file->dirty[number]) continue;
    ssize_t length = pread(from, page, PAGE, (off_t)number * PAGE);
    if (length > 0 && real_pwrite(to, page, length, (off_t)number * PAGE) != length) give_up("a page cannot be kept");
  }
  memset(file->dirty, 0, file->pages);
  file->pages = 0;
  if (real_ftruncate(to, is->st_size) != 0) give_up("a length cannot be kept");
  close(to);
  if (from != fd) close(from);
}

static void keep_names(const char *folder, ino_t inode) {
  char draft[4096], final[4096];
  snprintf(draft, sizeof draft, "%s/%lu.draft", flushed, (unsigned long)inode);
  snprintf(final, sizeof final, "%s/%lu.names", flushed, (unsigned long)inode);
  int to = kept(inode, ".draft", O_TRUNC);
  DIR *names = opendir(folder);
  if (!names) give_up(folder);
  for (struct dirent *entry; (entry = readdir(names));) {
    char path[4096 + 256];
    struct stat is;
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (lstat(path, &is) != 0) continue;
    watch(path, is.st_ino);
    dprintf(to, "%lu %c %s\n", (unsigned long)is.st_ino, S_ISDIR(is.st_mode) ? 'd' : 'f', entry->d_name);
  }
  closedir(names);
  close(to);
  if (rename(draft, final) != 0) give_up(final);
}

static void mark(struct watched *file, off_t at, size_t length) {
  if (length == 0) return;
  size_t last = (at + length - 1) / PAGE;
  if (last >= MOST_PAGES) give_up("a file is too large for this model");
  for (size_t number = at / PAGE; number <= last; number++) file->dirty[number] = 1;
  if (file->pages <= last) file->pages = last + 1;
}

/* Files that exist at the start count as flushed. */
static void keep_all(const char *folder) {
  struct stat is;
  if (stat(folder, &is) != 0) give_up(folder);
  watch(folder, is.st_ino);
  keep_names(folder, is.st_ino);
  DIR *names = opendir(folder);
  for (struct dirent *entry; names && (entry = readdir(names));) {
    char path[4096];
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (lstat(path, &is) != 0) continue;
    if (S_ISDIR(is.st_mode)) keep_all(path);
    if (!S_ISREG(is.st_mode)) continue;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct watched *file = watch(path, is.st_ino);
    mark(file, 0, is.st_size);
    keep_bytes(fd, file, &is);
    close(fd);
  }
  if (names) closedir(names);
}

__attribute__((constructor)) static void begin(void) {
  real_write = dlsym(RTLD_NEXT, "write");
  real_writev = dlsym(RTLD_NEXT, "writev");
  real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
  real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
  real_fsync = dlsym(RTLD_NEXT, "fsync");
  real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
  flushed = getenv("FLUSHED");
  const char *failing = getenv("FAILING");
  if (failing && sscanf(failing, "%ld-%ld", &every, &times) != 2) give_up("FAILING is not every-times");
  const char *watched = getenv("LIVE");
  if (!watched || !flushed) return;
  keep_all(watched);
  live = watched;
}

static int flush(int (*really)(int), int fd) {
  struct stat is;
  pthread_mutex_lock(&busy);
  struct watched *file = watched_file(fd, &is);
  int result = 0;
  if (file && flushes++ % every >= every - times) {
    memset(file->dirty, 0, file->pages);
    file->pages = 0;
    errno = EIO;
    result = -1;
  } else {
    result = really(fd);
    if (file && result == 0) {
      char link[64];
      snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
      if (S_ISDIR(is.st_mode)) keep_names(link, is.st_ino);
      else keep_bytes(fd, file, &is);
    }
  }
  pthread_mutex_unlock(&busy);
  return result;
}

int fsync(int fd) { return flush(real_fsync, fd); }
int fdatasync(int fd) { return flush(real_fdatasync, fd); }

static void wrote(int fd, off_t at, ssize_t length) {
  struct stat is;
  if (length <= 0) return;
  int before = errno;
  pthread_mutex_lock(&busy);
  struct watched *file = watched_file(fd, &is);
  if (file) mark(file, at < 0 ? lseek(fd, 0, SEEK_CUR) - length : at, length);
  pthread_mutex_unlock(&busy);
  errno = before;
}

ssize_t write(int fd, const void *bytes, size_t length) {
  ssize_t result = real_write(fd, bytes, length);
  wrote(fd, -1, result);
  return result;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  ssize_t result = real_writev(fd, parts, count);
  wrote(fd, -1, result);
  return result;
}

ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) {
  ssize_t result = real_pwrite(fd, bytes, length, at);
  wrote(fd, at, result);
  return result;
}

ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return pwrite64(fd, bytes, length, at); }

/* The length reaches the disk with the next flush. */
