-- Up Migration

-- What operators have said of one thing: their acts are few among those that anybody who asks for a link can add to.
CREATE INDEX audit_log_of_operators ON audit_log (subject, act) WHERE actor = 'operator';

-- Down Migration

DROP INDEX audit_log_of_operators;
