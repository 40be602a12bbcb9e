// Starting other programs, and being the right user while doing so.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace gclctl {

using Arguments = std::vector<std::string>;

// Runs a program to its end, in the directory / and without a terminal; its output, both streams, is returned.  Fails
// with that output if it does not exit with 0.
std::string output_of(const Arguments& arguments);

// Starts a program that outlives us: a session of its own, output appended to the file `log`.
pid_t start_daemon(const Arguments& arguments, const std::string& directory, const std::string& log);

// What a running program was started with.  Empty: it has ended, even if nobody has waited for it yet.
Arguments arguments_of(pid_t process);

// Whether its working directory is that one, by whatever path this is reached; nullopt: it cannot be told.
std::optional<bool> works_in(pid_t process, const std::filesystem::path& directory);

// The account a cluster made by the caller runs under: the caller's, or for root `postgres` (a server refuses root).
std::string account_for_new_cluster();

// Its name; fails if it has none.
std::string account_name(uid_t user);

// The account a file, or a link itself, belongs to; fails if there is none.
std::string account_of(const std::string& path);

// Fails unless we are `account` or root.
void check_may_act_for(const std::string& account);

// Runs `body` as `account` and returns its exit code: directly if we are that user, in a child if we are root.  Fails
// for other users, and for root's account.
int run_as(const std::string& account, const std::function<int()>& body);

// Makes an open file or directory (not what is in it) belong to the account.  REQUIRES: we are root.
void give_to(const std::string& account, int file);

}  // namespace gclctl
