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

// Gives the settings of that name new values, each as postgresql.conf wants it, in `data`/gcl.conf.
void rewrite_configuration(const fs::path& data, const std::map<std::string, std::string>& values);

}  // namespace gclctl
