// Directories in places where others may write: made, entered and read without following links of theirs.
//
// As root, gclctl writes and runs nothing in a cluster's directory: it makes the directory, hands it to the account,
// and does the rest as that account (gclctl.owner-never-root).
#pragma once

#include <filesystem>
#include <string>

namespace gclctl {

namespace fs = std::filesystem;

// The account that will own a new cluster in `dir`, and run its servers: the owner of a directory that is there and is
// not root's; otherwise the caller, or for root the account `postgres`.
std::string account_for(const fs::path& dir);

// Makes `dir` (true), or takes it as it is if it is empty (false): the account's, mode 0700.  Root makes it where no
// other account could put a link in the way; elsewhere the account does.
bool take_directory(const fs::path& dir, const std::string& account);

// Makes a directory of the caller's own, mode 0700, or makes certain that it is one: in /tmp and /dev/shm another
// account may have been there first.
void make_private_directory(const fs::path& path);

// What a small file in a cluster's directory says, and whose the directory is.  A link, or a file of another owner, is
// not read.
struct OwnersFile {
  fs::path dir;         // absolute, without links
  std::string account;  // the directory's owner; never root
  std::string text;
  bool found = false;
};
OwnersFile read_owners_file(const fs::path& dir, const std::string& name);

// On the disk when they return (gclctl.on-disk-when-told): a file's bytes, or a directory's names; and all there is in
// the file system of a directory, for what many files make.
void sync_path(const fs::path& path);
void sync_file_system(const fs::path& dir);

}  // namespace gclctl
