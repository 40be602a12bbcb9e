// A way between the two ends of connections that breaks them: after so many bytes as chance says, in the middle of
// whatever is sent just then.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <random>
#include <string>

#include "tests/support/beside.hpp"
#include "tests/support/eventually.hpp"

namespace gcl_test {

// Between unix sockets.
class CuttingProxy {
 public:
  // A connection carries `bytes` bytes on the average, both ways together.
  CuttingProxy(std::string listen, std::string to, size_t bytes, unsigned seed, As as = As::kProcess)
      : listen_(std::move(listen)),
        to_(std::move(to)),
        length_(1.0 / double(bytes)),
        random_(seed),
        proxy_(as, [this](const Beside::Over& over) { carry(over); }) {
    if (!eventually([&] { return shared().listens.load(); })) abort();
  }
  uint64_t cuts() const { return shared().cuts.load(); }

 private:
  struct Shared {
    std::atomic<bool> listens;
    std::atomic<uint64_t> cuts;
  };
  struct Pair {
    int end[2];
    size_t left;
  };
  Shared& shared() const { return *reinterpret_cast<Shared*>(bytes_.at()); }

  static sockaddr_un address_of(const std::string& path) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    snprintf(at.sun_path, sizeof at.sun_path, "%s", path.c_str());
    return at;
  }
  void carry(const Beside::Over& over) {
    const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un at = address_of(listen_);
    if (bind(listener, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0 || listen(listener, 64) != 0)
      perror("listen"), abort();
    shared().listens.store(true);
    while (!over.load()) {
      std::vector<pollfd> look = {{listener, POLLIN, 0}};
      for (const Pair& pair : pairs_)
        for (const int end : pair.end) look.push_back({end, POLLIN, 0});
      if (poll(look.data(), look.size(), 10) <= 0) continue;
      size_t i = 1;
      for (auto pair = pairs_.begin(); pair != pairs_.end(); i += 2) {
        const bool open = (!look[i].revents || carry(*pair, 0)) && (!look[i + 1].revents || carry(*pair, 1));
        if (!open) {
          end(*pair);
          pair = pairs_.erase(pair);
        } else {
          ++pair;
        }
      }
      if (look[0].revents) accept_one(listener);
    }
    for (const Pair& pair : pairs_) end(pair);
    close(listener);
  }
  // Also where a process that was forked meanwhile has it, too.
  static void end(const Pair& pair) {
    for (const int end : pair.end) shutdown(end, SHUT_RDWR), close(end);
  }
  void accept_one(int listener) {
    const int from = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (from < 0) return;
    const int to = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un at = address_of(to_);
    if (connect(to, reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) {
      close(from), close(to);
      return;
    }
    pairs_.push_back({{from, to}, size_t(length_(random_)) + 1});
  }
  // False: the connection breaks, or one end has closed it.
  bool carry(Pair& pair, int from) {
    char bytes[16384];
    const ssize_t had = recv(pair.end[from], bytes, sizeof bytes, MSG_DONTWAIT);
    if (had <= 0) return had < 0 && (errno == EAGAIN || errno == EINTR);
    const size_t count = std::min(size_t(had), pair.left);
    for (size_t done = 0; done < count;) {  // an end that reads nothing holds up all others: it is a test's
      const ssize_t n = send(pair.end[!from], bytes + done, count - done, MSG_NOSIGNAL);
      if (n <= 0) return false;
      done += size_t(n);
    }
    pair.left -= count;
    if (pair.left > 0) return true;
    shared().cuts.fetch_add(1);
    return false;
  }

  const std::string listen_, to_;
  std::exponential_distribution<double> length_;
  std::minstd_rand random_;
  std::list<Pair> pairs_;
  SharedBytes bytes_{sizeof(Shared)};
  Beside proxy_;  // last: it uses all else
};

}  // namespace gcl_test
