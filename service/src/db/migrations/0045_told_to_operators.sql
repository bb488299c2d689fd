-- Up Migration

-- What operators have said of one thing: their acts are few among those that anybody who asks for a link can add to.
CREATE INDEX audit_log_of_operators ON audit_log (subject, act) WHERE actor = 'operator';

-- Why the exchange was not possible when it was tried last in vain; kept when it is made or given up.
ALTER TABLE orders ADD COLUMN exchange_trouble text;

-- Down Migration

ALTER TABLE orders DROP COLUMN exchange_trouble;
DROP INDEX audit_log_of_operators;
