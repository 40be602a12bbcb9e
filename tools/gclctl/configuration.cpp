#include "tools/gclctl/configuration.hpp"

#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <sstream>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/text_file.hpp"

namespace gclctl {
namespace {

constexpr const char* kReadLast = "postgresql.auto.conf";  // which ALTER SYSTEM writes

}  // namespace

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

namespace {

// What a line of postgresql.conf sets, in lower case, as names are the same in either; empty: nothing.
std::string name_in(const std::string& line) {
  std::string name;
  for (size_t i = std::min(line.find_first_not_of(" \t"), line.size()); i < line.size(); ++i) {
    const auto letter = static_cast<unsigned char>(line[i]);
    if (std::isalnum(letter) == 0 && letter != '_' && letter != '.') break;
    name += char(std::tolower(letter));
  }
  return name;
}

// `change` gives each line another text; nothing: the line goes.
void rewrite_lines(const fs::path& file,
                   const std::function<std::optional<std::string>(const std::string& line)>& change) {
  std::istringstream in(read_text(file));
  std::string text;
  for (std::string line; std::getline(in, line);)
    if (const auto changed = change(line)) text += *changed + "\n";
  write_text(file, text);
}

}  // namespace

void rewrite_configuration(const fs::path& data, const Settings& values) {
  rewrite_lines(data / "gcl.conf", [&](const std::string& line) -> std::optional<std::string> {
    const auto value = values.find(name_in(line));
    return value == values.end() ? line : value->first + " = " + value->second;
  });
  if (!fs::exists(data / kReadLast)) return;
  rewrite_lines(data / kReadLast, [&](const std::string& line) -> std::optional<std::string> {
    return values.contains(name_in(line)) ? std::nullopt : std::optional(line);
  });
}

void overrule_configuration(const fs::path& data, const Settings& values) {
  rewrite_configuration(data, values);
  std::string text;
  for (const auto& [name, value] : values) text += name + " = " + value + "\n";
  append_text(data / kReadLast, text);
}

}  // namespace gclctl
