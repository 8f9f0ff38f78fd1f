// digest.mjs PATH…: one hash over all files below the paths, names and contents. Arguments `=TEXT` count as they are.
import { createHash } from 'node:crypto';
import { lstatSync, readFileSync, readdirSync } from 'node:fs';

const hash = createHash('sha256');

function add(path) {
    if (lstatSync(path).isDirectory()) {
        for (const name of readdirSync(path).sort()) add(`${path}/${name}`);
        return;
    }
    const content = readFileSync(path);
    hash.update(`${path}\0${content.length}\0`).update(content);
}

for (const argument of process.argv.slice(2)) {
    if (argument.startsWith('=')) hash.update(argument).update('\0');
    else add(argument);
}
console.log(hash.digest('hex'));
