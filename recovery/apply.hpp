// Applying redo to a page image, whatever holds the image: a survivor that repairs, or a server that starts alone.
//
//   RecordReader reader(record);                    // whole, out of a ring or a log
//   while (const RecordPage* page = reader.next_page())
//     if (Image* image = find(page->page)) {
//       auto applied = apply(reader, *page, image->bytes, &problem);
//       if (!applied) return applied.error();
//     }
#pragma once

#include <cstddef>
#include <cstdint>

#include "bufmgr/log/record.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace recovery {

enum class Applied : uint8_t {
  kChanged,       // the image has the record's version now
  kAlreadyThere,  // it had that version, or a newer one, before
};

// Applies the part of a record that changes `page` to `image` (kPageSize bytes), by version (log.next-version-only).
// `reader` has just returned `page`.  Errors, which leave the image as it is: kNotFound, the image is older than the
// version before the record's, so that a record is missing (recovery.gap-is-error); kCorrupt, these bytes are no steps.
coherence::Result<Applied> apply(bufmgr::RecordReader reader, const bufmgr::RecordPage& page, std::byte* image,
                                 coherence::Problem* problem) noexcept;

}  // namespace recovery
