-- Up Migration

-- When the order first came into EMERGENCY: from then on a customer who has done everything right has his locked rate for a
-- while (decision 0019). Null for what came into it before.
ALTER TABLE orders ADD COLUMN first_emergency_at_ms bigint;

-- Down Migration

ALTER TABLE orders DROP COLUMN first_emergency_at_ms;
