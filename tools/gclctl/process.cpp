#include "tools/gclctl/process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

[[noreturn]] void exec(const Arguments& arguments) {
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  fmt::print(stderr, "cannot run {}: {}\n", argv[0], strerror(errno));
  _exit(127);
}

int wait_for(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

pid_t fork_or_fail() {
  fflush(nullptr);
  pid_t pid = fork();
  if (pid < 0) fail("cannot fork: {}", strerror(errno));
  return pid;
}

const passwd& account_entry(const std::string& account) {
  const passwd* entry = getpwnam(account.c_str());
  if (entry == nullptr) fail("there is no account \"{}\" on this machine", account);
  return *entry;
}

}  // namespace

std::string output_of(const Arguments& arguments) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("cannot make a pipe: {}", strerror(errno));
  pid_t pid = fork_or_fail();
  if (pid == 0) {
    setsid();  // no terminal: a program of the account's could type into root's
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    if (chdir("/") != 0) _exit(126);  // PostgreSQL's programs complain of a directory they may not enter
    exec(arguments);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) != 0;) {
    if (n > 0)
      text.append(buffer, size_t(n));
    else if (errno != EINTR)
      break;
  }
  close(ends[0]);
  if (int code = wait_for(pid); code != 0) fail("{} ended with {}:\n{}", fmt::join(arguments, " "), code, text);
  return text;
}

Arguments arguments_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/cmdline", process));
  Arguments arguments;
  for (std::string one; std::getline(in, one, '\0');) arguments.push_back(one);
  return arguments;
}

std::optional<bool> works_in(pid_t process, const std::filesystem::path& directory) {
  std::error_code unknown;
  const bool does = std::filesystem::equivalent(fmt::format("/proc/{}/cwd", process), directory, unknown);
  return unknown ? std::nullopt : std::optional(does);
}

pid_t start_daemon(const Arguments& arguments, const std::string& directory, const std::string& log) {
  int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (out < 0) fail("cannot write {}: {}", log, strerror(errno));
  pid_t pid = fork_or_fail();
  if (pid == 0) {
    setsid();
    int null = open("/dev/null", O_RDONLY);
    dup2(null, 0);
    dup2(out, 1);
    dup2(out, 2);
    for (int fd = 3; fd < 256; fd++) close(fd);
    if (chdir(directory.c_str()) != 0) _exit(126);
    exec(arguments);
  }
  close(out);
  return pid;
}

std::string account_for_new_cluster() {
  return geteuid() == 0 ? std::string(account_entry("postgres").pw_name) : account_name(geteuid());
}

std::string account_name(uid_t user) {
  const passwd* entry = getpwuid(user);
  if (entry == nullptr) fail("user id {} has no name", user);
  return entry->pw_name;
}

std::string account_of(const std::string& path) {
  struct stat file;
  if (lstat(path.c_str(), &file) != 0) fail("{}: {}", path, strerror(errno));
  return account_name(file.st_uid);
}

void check_may_act_for(const std::string& account) {
  if (uid_t me = geteuid(); me != 0 && me != account_entry(account).pw_uid)
    fail("the cluster belongs to \"{}\": run gclctl as that user, or as root", account);
}

int run_as(const std::string& account, const std::function<int()>& body) {
  const passwd& entry = account_entry(account);
  if (entry.pw_uid == 0)
    fail("root runs no servers, nor what lies beside them: give the files to another account (chown -R)");
  if (entry.pw_uid == geteuid()) return body();
  check_may_act_for(account);
  pid_t pid = fork_or_fail();
  if (pid == 0) {
    if (initgroups(entry.pw_name, entry.pw_gid) != 0 || setgid(entry.pw_gid) != 0 || setuid(entry.pw_uid) != 0)
      _exit(126);
    setenv("HOME", entry.pw_dir, 1);
    setenv("USER", entry.pw_name, 1);
    setenv("LOGNAME", entry.pw_name, 1);
    if (chdir("/") != 0) _exit(126);
    int code = 1;
    try {
      code = body();
    } catch (const std::exception& e) {
      fmt::print(stderr, "gclctl: {}\n", text_of(e));
    }
    fflush(nullptr);
    _exit(code);
  }
  return wait_for(pid);
}

void give_to(const std::string& account, int file) {
  const passwd& entry = account_entry(account);
  if (fchown(file, entry.pw_uid, entry.pw_gid) != 0) fail("cannot give a file to {}: {}", account, strerror(errno));
}

}  // namespace gclctl
