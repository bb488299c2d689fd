-- Up Migration

-- A transaction that is mined again after a reorganisation may pay another order at the same place in it. Its deposit is in
-- a block for one order at a time; of the other it is told later that it has gone.
ALTER TABLE deposits DROP CONSTRAINT deposits_bucket_deposit_key_key;
CREATE UNIQUE INDEX deposits_in_one_place ON deposits (bucket, deposit_key) WHERE state IN ('mined', 'confirmed');

-- Down Migration

DROP INDEX deposits_in_one_place;
ALTER TABLE deposits ADD UNIQUE (bucket, deposit_key);
