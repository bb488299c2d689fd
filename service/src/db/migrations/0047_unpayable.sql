-- Up Migration

-- A payout of the asset cannot be made now: the fee above what the operator allows is only one of the reasons. So it is not quoted.
ALTER TABLE reserves RENAME COLUMN is_above_fee_cap TO is_unpayable;

-- Down Migration

ALTER TABLE reserves RENAME COLUMN is_unpayable TO is_above_fee_cap;
