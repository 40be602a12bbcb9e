// The arguments of a measurement: name=value, in any order.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

namespace paper {

// Calls set(name, value) for each argument; false: set() knows one of them not, and stderr says which.
template <class Set>
bool read_name_values(int count, char** words, const Set& set) {
  for (int i = 1; i < count; i++) {
    const char* const equals = strchr(words[i], '=');
    if (equals && set(std::string(words[i], size_t(equals - words[i])), equals + 1)) continue;
    fprintf(stderr, "%s: not a name=value that is known (main.cpp)\n", words[i]);
    return false;
  }
  return true;
}

}  // namespace paper
