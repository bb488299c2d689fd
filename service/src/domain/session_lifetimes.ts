import { DAY_MS, MINUTE_MS } from './time.ts'

/** A link that signs in is good for so long. */
export const LINK_LIFETIME_MS = 15 * MINUTE_MS
/** Without a use for so long a session ends by itself. */
export const SESSION_IDLE_MS = DAY_MS
/** However much it is used. */
export const SESSION_MS_MAX = 14 * DAY_MS
/** Two people in two mailboxes may have to look. */
export const EMAIL_CHANGE_LIFETIME_MS = DAY_MS
