import { DAY_MS, MINUTE_MS } from './time.ts'

/** How long a link that signs in is good. */
export const LINK_LIFETIME_MS = 15 * MINUTE_MS
/** A session that is not used for this long ends by itself. */
export const SESSION_IDLE_MS = DAY_MS
/** A session ends after this time however much it is used. */
export const SESSION_MS_MAX = 14 * DAY_MS
/** How long both addresses may take to agree to a change: two people in two mailboxes may have to look. */
export const EMAIL_CHANGE_LIFETIME_MS = DAY_MS
