/** So many coins a transaction of ours spends at the most: about 34 kB, a third of what nodes relay. The signer signs no more. */
export const BITCOIN_INPUTS_MAX = 500

/** So many a payout is charged for, whoever is paid; most need fewer. */
export const BITCOIN_INPUTS_CHARGED = 3
