// Included before frame_table.cpp in the simulator: the product's remove() gets another name (pool_mutation.cpp has
// this one).  Not by a definition on the command line: <cstdio> takes that back.
#pragma once

#include <algorithm>
#include <cstdio>

#define remove product_remove
