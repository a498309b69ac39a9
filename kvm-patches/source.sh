# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016
#
# To be sourced: where a series' kernel comes from. The sourcing script has say() and skip(), and a
# folder $work for downloads.

# Set $package, $version and, if it is installed, $tarball, from the file "source" of the series in
# folder $1. Otherwise fetch_source gets it.
find_source()
{
	read -r package version source_path source_sum < <(grep -v '^#' "$1/source")
	tarball=/usr/src/$package.tar.xz
	if [ "$source_path" = installed ]; then
		[ -r "$tarball" ] || skip "$tarball is missing: scripts/deps test"
		oldest=$version
		version=$(dpkg-query -W -f '${Version}' "$package")
		dpkg --compare-versions "$version" ge "$oldest" ||
			skip "$package $version is older than $oldest, which ${1##*/} is for: update it"
	else
		version=$package-$version
	fi
}

# Debian's package, installed or, if of a newer Debian than this one, fetched to $tarball.
fetch_source()
{
	local uri deb=$work/source.deb

	[ "$source_path" != installed ] || return 0
	command -v apt-get >/dev/null || skip "this is not a Debian system: no $package"
	while read -r uri; do
		say "fetching ${source_path##*/}"
		timeout 900 /usr/lib/apt/apt-helper -o APT::Sandbox::User=root \
			-o Acquire::Retries=2 -o Acquire::http::Timeout=30 \
			download-file "${uri%/}/$source_path" "$deb" "SHA256:$source_sum" >"$work/log" 2>&1 &&
			break
		rm -f "$deb"
	done < <(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
		grep -v '^[^ ]*-security ' | cut -d ' ' -f 2 | sort -u)
	[ -e "$deb" ] || skip "${source_path##*/} is not available in the archives that apt uses"
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$work" -x "./usr/src/$package.tar.xz"
	rm "$deb"
	tarball=$work/usr/src/$package.tar.xz
}
