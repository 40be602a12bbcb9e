#include "extension/pg/tableam/storage_face.hpp"

#include <fcntl.h>

#include "extension/engine/heap/relation_map.hpp"

extern "C" {
#include "storage/fd.h"
#include "storage/smgr.h"
}

namespace gcl {

namespace {

// As the server's md.c has it.
struct Segment {
  File file;
  BlockNumber number;
};

constexpr uint64_t kBlocksMax = uint64_t{engine::RelationPage::kMapsMax} * engine::kBlocksPerMap;
constexpr uint32_t kSegments = uint32_t((kBlocksMax + RELSEG_SIZE - 1) / RELSEG_SIZE);

// Of this process: its descriptors are (tableam.face-reads-nothing).
SMgrRelation open_everywhere() {
  static SMgrRelationData storage;
  static Segment segments[kSegments];
  if (storage.md_num_open_segs[MAIN_FORKNUM] != 0) return &storage;
  const File nothing = PathNameOpenFile("/dev/null", O_RDONLY | PG_BINARY);
  if (nothing < 0) ereport(ERROR, errcode_for_file_access(), errmsg("could not open file \"%s\": %m", "/dev/null"));
  for (uint32_t i = 0; i < kSegments; ++i) segments[i] = {nothing, i};
  storage.smgr_rnode.backend = InvalidBackendId;
  storage.smgr_targblock = InvalidBlockNumber;
  for (BlockNumber& blocks : storage.smgr_cached_nblocks) blocks = InvalidBlockNumber;
  storage.md_seg_fds[MAIN_FORKNUM] = reinterpret_cast<_MdfdVec*>(segments);
  storage.md_num_open_segs[MAIN_FORKNUM] = int(kSegments);
  return &storage;
}

}  // namespace

Relation storage_face_of(Relation table, StorageFace* face) {
  memset(face, 0, sizeof *face);
  memcpy(&face->form, table->rd_rel, CLASS_TUPLE_SIZE);
  face->rel.rd_id = table->rd_id;
  face->rel.rd_node = table->rd_node;
  face->rel.rd_backend = table->rd_backend;
  face->rel.rd_rel = &face->form;
  face->rel.rd_tableam = table->rd_tableam;
  face->rel.rd_smgr = open_everywhere();
  return &face->rel;
}

}  // namespace gcl
