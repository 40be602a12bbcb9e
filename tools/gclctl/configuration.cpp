#include "tools/gclctl/configuration.hpp"

#include <fstream>
#include <sstream>

#include "tools/gclctl/failure.hpp"

namespace gclctl {

std::string quoted_setting(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "''" : c == '\\' ? "\\\\" : std::string(1, c);
  return out + "'";
}

namespace {

// As a shell wants it.
std::string word_of_shell(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

}  // namespace

std::string checkpoint_command(const Cluster& c) {
  return "\"$GCL_BINDIR/gclctl\" checkpoint " + word_of_shell(c.dir.string());
}

void rewrite_configuration(const fs::path& data, const std::map<std::string, std::string>& values) {
  const fs::path file = data / "gcl.conf";
  std::ifstream in(file);
  std::ostringstream text;
  for (std::string line; std::getline(in, line);) {
    const auto value = values.find(line.substr(0, line.find(" = ")));
    text << (value == values.end() ? line : value->first + " = " + value->second) << "\n";
  }
  std::ofstream out(file, std::ios::trunc);
  out << text.str();
  if (!out.flush()) fail("cannot write {}", file.string());
}

}  // namespace gclctl
