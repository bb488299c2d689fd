-- Up Migration

-- A payout of the asset would be refused now: its fee is above what the operator allows. So it is not quoted.
ALTER TABLE reserves ADD COLUMN is_above_fee_cap boolean NOT NULL DEFAULT false;

-- Down Migration

ALTER TABLE reserves DROP COLUMN is_above_fee_cap;
