/**
 * Run once after an installation: Node strips the types of everything that the sandbox loads and keeps it where
 * `npm start` looks for it, so that the first start does not have to. The installation goes on when it fails: the sandbox
 * will say what is wrong, to somebody who is looking.
 */
const networks = import('@cambist/devnet').then(({ loadNetworks }) => loadNetworks())
await Promise.all([import('../commands/sandbox.ts'), import('../main.ts'), networks])
process.exit()
