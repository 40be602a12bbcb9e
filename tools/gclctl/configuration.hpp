// The configuration of a primary: what gclctl writes into <data>/gcl.conf.
#pragma once

#include <filesystem>
#include <map>
#include <string>

namespace gclctl {

namespace fs = std::filesystem;

// A value of postgresql.conf, in quotes.
std::string quoted_setting(const std::string& text);

// Gives the settings of that name new values, each as postgresql.conf wants it, in `data`/gcl.conf.
void rewrite_configuration(const fs::path& data, const std::map<std::string, std::string>& values);

}  // namespace gclctl
