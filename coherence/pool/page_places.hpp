// PagePlaces: where the pages and the latch words of one memory node lie.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/latch/latch_word.hpp"

namespace coherence {

struct PagePlaces {
  PoolAddress pages_at, words_at;
  uint64_t word_rows = 1, pages = 0;

  static constexpr uint64_t rows_for(uint64_t pages) { return (pages + 7) / 8 + 1; }  // eight words to a CPU line
  PoolAddress page(uint64_t number) const { return pages_at + number * kPageSize; }
  // Neighbouring pages' words lie in different CPU lines (pool.allocated-in-full).
  PoolAddress word(uint64_t number) const {
    return words_at + ((number % word_rows) * 8 + number / word_rows) * sizeof(LatchWord);
  }
  // Words lie one behind the other; a few have no page.
  uint64_t words() const { return word_rows * 8; }
  uint64_t number_of_word(uint64_t index) const { return index % 8 * word_rows + index / 8; }  // none if >= pages
};

}  // namespace coherence
