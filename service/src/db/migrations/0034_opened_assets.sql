-- Up Migration

-- Assets that looks at their chain know. What addresses of ours held of one at the block at `height` is in the books as a sum, and what
-- later blocks bring is told; 0: since the chain's first look. Not `is_read`: a reorganisation took the block whose sum was in the
-- books, and that of the one at `height` is still to be read.
CREATE TABLE opened_assets (
  asset text PRIMARY KEY,
  height bigint NOT NULL CHECK (height >= 0),
  is_read boolean NOT NULL
);

-- Whatever was looked at, compared, or told of before.
INSERT INTO opened_assets (asset, height, is_read)
SELECT asset, 0, true FROM reserves
UNION SELECT asset, 0, true FROM reconciliations
UNION SELECT asset, 0, true FROM wallet_sums
UNION SELECT asset, 0, true FROM wallet_movements
UNION SELECT asset, 0, true FROM deposits
UNION SELECT asset, 0, true FROM house_deposits WHERE kind <> 'unlisted';

-- Down Migration

DROP TABLE opened_assets;
