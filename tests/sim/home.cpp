#include "home.hpp"

#include <stdlib.h>

#include <cstdio>
#include <filesystem>

namespace sim {
namespace {

struct Home {
  std::string path = "/dev/shm/gcl-sim-XXXXXX";
  Home() {
    if (mkdtemp(path.data()) == nullptr) perror(path.c_str()), abort();
  }
  ~Home() { std::filesystem::remove_all(path); }
};

}  // namespace

const std::string& home() {
  static const Home home;
  return home.path;
}

void empty_home() {
  for (const auto& file : std::filesystem::directory_iterator(home())) std::filesystem::remove(file);
}

}  // namespace sim
