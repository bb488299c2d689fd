-- Up Migration

-- For which reasons the audit log tells already that the link did not sign in.
ALTER TABLE sign_in_links ADD COLUMN failed_for text[] NOT NULL DEFAULT '{}';

-- Down Migration

ALTER TABLE sign_in_links DROP COLUMN failed_for;
