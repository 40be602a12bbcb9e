// Small text files as wholes.  What fails names the file, and says why.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gclctl {

namespace fs = std::filesystem;

std::string read_text(const fs::path&);
// The file is there with that text, or as it was.
void write_text(const fs::path&, std::string_view text);
// The text is behind what the file has; it is made if it is not there.
void append_text(const fs::path&, std::string_view text);

}  // namespace gclctl
