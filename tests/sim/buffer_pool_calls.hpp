// Included before buffer_pool.cpp in the simulator: what one of its calls becomes where the product is broken on
// purpose.
#pragma once

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/copy.hpp"
#include "bufmgr/page_provider.hpp"
#include "mutation.hpp"

// Copies that were changed meanwhile are taken all the same.
#define validate() validate() || sim::mutation == sim::Mutation::kNotValidated
