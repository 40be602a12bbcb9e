// The configuration of a primary: what gclctl writes into <data>/gcl.conf.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// A value of postgresql.conf, in quotes.
std::string quoted_setting(const std::string& text);

// gcl.checkpoint_command of the cluster's primaries: each calls the gclctl that lies beside its own server.
std::string checkpoint_command(const Cluster&);

using Settings = std::map<std::string, std::string>;  // by name in lower case; values as postgresql.conf wants them

// Gives the settings that are in `data`/gcl.conf these values.
//
// gclctl.own-settings-count: A data directory that was another server's has what ALTER SYSTEM has set there, in a file
//     that is read last. What gclctl gives its own value is in there no more.
void rewrite_configuration(const fs::path& data, const Settings& values);

// The same, and whatever any file of the directory says of them.
void overrule_configuration(const fs::path& data, const Settings& values);

}  // namespace gclctl
