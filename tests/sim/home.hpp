// Where the pools' files lie: one directory for the process, and empty between runs.
#pragma once

#include <string>

namespace sim {

const std::string& home();
void empty_home();

}  // namespace sim
