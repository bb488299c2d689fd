/**
 * What engine and signer say to each other. To be raised with every change of what a request or an answer holds or means: in every one of
 * them, so that of two releases that differ neither takes the words of the other for what they are not. A refused request would look
 * like the refusal of a payout, which is given up in time.
 */
export const PROTOCOL = 2
